"""Networks out of model files: everything that a file says is checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.engine.base_training import BaseTraining
from onlearn.engine.csr import CSR, without_duplicates
from onlearn.engine.inputs import HEAVIEST
from onlearn.mlp.network import Layout
from onlearn.mlp.optimizers import LARGEST, MOMENTS, REMEMBERED, Rates
from onlearn.mlp.scaling import Scaler
from onlearn.mlp.scoring import Design
from onlearn.mlp.training import FACTS, NetworkTraining
from onlearn.model_schema import COUNT, NUMBERS, TRUTH, Arrays, Record, check_array

FILED = Record(
    {
        **BaseTraining.FILED.facts,
        **dict.fromkeys(("sparse", "settled", "numbers_settled", "centred"), TRUTH),
        **dict.fromkeys(("drawn_for", "steps"), COUNT),
        "validation": NUMBERS,
    }
)


def unpack_network(design: Design, features: int, seed: int, facts: dict[str, Any],
                   arrays: Arrays) -> NetworkTraining:  # fmt: skip
    """What ``pack`` took apart, its facts checked by ``FILED``; refuses what could not have come from it."""
    outputs, kind = facts["outputs"], design.dtype
    if not 1 <= max(features, outputs) <= arrays["w"].size:
        raise ValueError(f"w does not have the shape of a network of {features} inputs and {outputs} outputs")
    layout = Layout((features, *design.hidden, outputs))
    check_array("w", arrays["w"], kind, (layout.size,), -LARGEST, LARGEST)  # before memory for as many is asked for
    made = NetworkTraining(design, features, outputs, seed, facts["sparse"])
    made.take_counts(facts, arrays)
    for name in FACTS:
        setattr(made, name, facts[name])
    most = {"v": LARGEST * LARGEST, "s": LARGEST * LARGEST}
    for name in MOMENTS:
        if hasattr(made.o, name):
            low = 0.0 if name in most else -LARGEST
            check_array(name, arrays[name], kind, (layout.size,), low, most.get(name, LARGEST))
    made.o = made.o._replace(**{name: arrays[name].copy() for name in ("w", *MOMENTS) if hasattr(made.o, name)})
    steps = facts["steps"]
    check_array("past", arrays["past"], kind, (REMEMBERED,), 0.0)
    check_array("last", arrays["last"], "int64", (features,), -1, steps)
    if ((arrays["last"] >= 0) & (arrays["last"] < steps - REMEMBERED)).any():
        raise ValueError("some weights have waited longer than steps are remembered")
    made.rates = Rates(arrays["past"].copy(), np.array([steps], np.int64), arrays["last"].copy(), made.rates.l2)
    made.inputs = Scaler.unpack("inputs", features, facts["centred"], facts["settled"], arrays)
    made.numbers = Scaler.unpack("numbers", 1, made.numbers.centred, facts["numbers_settled"], arrays)
    if "waiting.y" in arrays:
        made.waiting = unpack_waiting(made, arrays)
    return made


def unpack_waiting(training: NetworkTraining, arrays: Arrays) -> tuple[Any, np.ndarray, np.ndarray]:
    y, weight, kind = arrays["waiting.y"], arrays["waiting.weight"], training.design.dtype
    count = len(y) if y.ndim == 1 else 0
    if not 0 < count < training.design.batch:
        raise ValueError(f"{count} examples cannot wait for a batch of {training.design.batch}")
    classes = max(2, training.outputs)
    check_array("waiting.y", y, "float64", (count,), *((0, classes - 1, True) if training.classifies else ()))
    check_array("waiting.weight", weight, "float64", (count,), 0.0, HEAVIEST)
    if not training.sparse:
        check_array("waiting.rows", arrays["waiting.rows"], kind, (count, training.features))
        return arrays["waiting.rows"], y, weight
    data, indices, indptr = (arrays[f"waiting.{name}"] for name in ("data", "indices", "indptr"))
    check_array("waiting.data", data, kind, (len(data),))
    check_array("waiting.indices", indices, "int32 int64", (len(data),), 0, training.features - 1)
    check_array("waiting.indptr", indptr, "int32 int64", (count + 1,), 0, len(data))
    return without_duplicates(CSR(data, indices, indptr, (count, training.features))), y, weight
