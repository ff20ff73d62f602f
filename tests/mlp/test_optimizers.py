"""Steps of the optimizers against their formulas, and weights that are brought up to date late."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plain_network
from onlearn.mlp.optimizers import OPTIMIZERS, REMEMBERED, Rates, catch_up_rows, step_rows, take_step

SPELLED = ["sgd(0.1)", "sgd(0.1, momentum=0.9)", "adagrad(0.1)", "adam(0.01)", 'adam(0.1, schedule="1/sqrt(t)")']
choices = st.sampled_from(SPELLED).map(OPTIMIZERS.get)


def rates_for(choice, features, l2, dtype=np.float64):
    still = np.full(features, -1 if l2 == 0 else 0)
    return Rates(np.zeros(REMEMBERED, dtype), np.zeros(1, np.int64), still, np.array([l2], dtype))


def next_rate(choice, rates):
    rates.step[0] += 1
    rate = choice.rates(np.array([float(rates.step[0])]), float(rates.l2[0])).astype(rates.past.dtype)[0]
    rates.past[rates.step[0] % REMEMBERED] = rate
    return rate


@given(choices, st.sampled_from([0.0, 0.01]), st.integers(0, 99))
def test_a_step_is_its_formula(choice, l2, seed):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=7)
    plain, optimizer = w.copy(), plain_network.PlainOptimizer(choice, l2)
    o, rates = choice.start(w.copy()), rates_for(choice, 1, l2)
    for _ in range(12):
        g = rng.normal(size=7)
        optimizer.t += 1
        plain = optimizer.step("w", plain, g, penalised=True)
        take_step(o, 0, 7, g, 0, next_rate(choice, rates), l2)
    np.testing.assert_allclose(o.w, plain, rtol=1e-9, atol=1e-12)


@given(choices, st.sampled_from([0.0, 0.01]), st.lists(st.sets(st.integers(0, 3)), max_size=40))
def test_weights_that_are_late_become_what_they_would_have_been(choice, l2, touched):
    """A step moves all weights, those of features without a gradient too; or it does so later."""
    rng = np.random.default_rng(0)
    features, width = 4, 3
    w = rng.normal(size=features * width)
    soon, late = choice.start(w.copy()), choice.start(w.copy())
    rates, other = rates_for(choice, features, l2), rates_for(choice, features, l2)
    for some in touched:
        rows = np.array(sorted(some), dtype=np.int64)
        g = rng.normal(size=(len(rows), width))
        whole = np.zeros((features, width))
        whole[rows] = g
        take_step(soon, 0, w.size, whole.reshape(-1), 0, next_rate(choice, other), l2)
        catch_up_rows(late, rates, rows, len(rows), width)
        step_rows(late, rates, rows, len(rows), width, g.reshape(-1), next_rate(choice, rates), l2)
    catch_up_rows(late, rates, np.arange(features), features, width)
    for one, wanted in zip(late, soon):
        np.testing.assert_allclose(one, wanted, rtol=1e-9, atol=1e-14)


def test_weights_that_rest_catch_up_in_closed_form():
    choice = OPTIMIZERS.get("adam")
    for steps in (300, 1000):
        soon, late = choice.start(np.ones(3)), choice.start(np.ones(3))
        rates, other = rates_for(choice, 1, 0.0), rates_for(choice, 1, 0.0)
        for t in range(steps):
            g = np.ones(3) if t == 0 else np.zeros(3)
            take_step(soon, 0, 3, g, 0, next_rate(choice, other), 0.0)
            if t == 0:
                step_rows(late, rates, np.zeros(1, np.int64), 1, 3, g, next_rate(choice, rates), 0.0)
            else:
                next_rate(choice, rates)
        catch_up_rows(late, rates, np.zeros(1, np.int64), 1, 3)
        np.testing.assert_allclose(late.w, soon.w, rtol=1e-9)
        np.testing.assert_allclose(late.v, soon.v, rtol=1e-9)


@pytest.mark.parametrize("spelled", SPELLED)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_gradient_makes_a_weight_that_is_not_a_number(spelled, dtype):
    choice = OPTIMIZERS.get(spelled)
    o = choice.start(np.ones(5, dtype))
    for g in (np.nan, np.inf, -np.inf, 1e38, -1e38, 0.0):
        for _ in range(3):
            take_step(o, 0, 5, np.full(5, g, dtype), 0, dtype(1e8), dtype(0))
    assert all(np.isfinite(one).all() for one in o)


def test_schedules_are_those_of_the_engine():
    steps = np.array([1.0, 4.0, 100.0])
    np.testing.assert_allclose(OPTIMIZERS.get("sgd(0.5)").rates(steps, 0.0), 0.5)
    np.testing.assert_allclose(OPTIMIZERS.get('sgd(0.5, schedule="1/sqrt(t)")').rates(steps, 0.0), [0.5, 0.25, 0.05])
    pegasos = OPTIMIZERS.get('sgd(0.5, schedule="1/(lambda t)")')
    np.testing.assert_allclose(pegasos.rates(steps, 0.1), [5.0, 1.25, 0.05])
    with pytest.raises(ValueError, match="needs l2"):
        pegasos.check_l2(0.0)
