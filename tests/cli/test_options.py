"""Options are stated once, and each front end spells them its own way."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest

import onlearn
from onlearn.cli.terminal import as_options, option_name
from onlearn.cli.train import train
from onlearn.cluster.options import ClusterOptions
from onlearn.errors import PlanError
from onlearn.models import TrainOptions
from onlearn.models.training import plan_of


def test_the_command_and_python_have_the_same_options():
    command = inspect.signature(train).parameters
    python = inspect.signature(onlearn.train).parameters
    assert [*python] == [one.name for one in fields(TrainOptions)]
    of_clusters = {one.name for one in fields(ClusterOptions)} - {one.name for one in fields(TrainOptions)}
    assert command.keys() - python.keys() == {"as_json", "quiet", "report_file", *of_clusters}
    for name in python.keys() - {"sources", "output"}:
        assert command[name].default == python[name].default


@pytest.mark.parametrize(
    ("said", "spelled"),
    [
        ("say target= if it is another", "say --target if it is another"),
        ("max_names= needs named features", "--max-names needs named features"),
        ("task=regress, or task='classify'", "--task regress, or --task classify"),
        ("do not say header=True", "do not say --header"),
        ("say header=False", "say --no-header"),
        ("the namespace 'c' of interact=a,c never occurred", "the namespace 'c' of --interact a,c never occurred"),
        ("x=1, nosuch= and 'target=' are as they are", "x=1, nosuch= and 'target=' are as they are"),
    ],
)
def test_parameters_are_spelled_as_options(said, spelled):
    assert as_options(said) == spelled


def test_errors_carry_the_name_of_the_parameter():
    with pytest.raises(PlanError) as caught:
        plan_of(TrainOptions(sources="a.csv", ngrams="two"))
    assert caught.value.parameter == "ngrams" and option_name("max_names") == "--max-names"
    assert str(caught.value) == "ngrams: 'two' is not a range of lengths such as 1-2"


def test_every_option_that_a_model_holds_is_refused_on_resuming():
    values = {int: 7, float: 0.5, bool: True, list: ["a"], str: "x"}
    for one in fields(TrainOptions):
        about = one.metadata["about"]
        options = TrainOptions(sources="a.csv", **{one.name: values[about.type]} if one.name != "sources" else {})
        assert (one.name in options.given("in_model")) == about.in_model


def test_options_as_python_has_them():
    plan = plan_of(TrainOptions(sources=["a.csv"], ngrams=(1, 2), holdout=0.1, classes=["a", "b"], numeric="x"))
    assert plan.text == {"ngrams": (1, 2)} and plan.holdout == 0.1 and plan.labels == ["a", "b"]
    assert plan.roles == {"x": "numeric"}
    spelled = plan_of(TrainOptions(sources=["a.csv"], ngrams="1-2", holdout="10%", classes="a,b", numeric=["x"]))
    assert plan == spelled
