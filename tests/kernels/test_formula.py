"""Reading formulas: what they mean, and what is refused; no text is ever run."""

from __future__ import annotations

import pytest

from onlearn import kernels
from onlearn.kernels import Gaussian, Kernel, Linear, Polynomial, get
from onlearn.kernels.family import HOMES, MEMBERS, kernel


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("linear", Linear()),
        ("linear()", Linear()),
        (" gaussian( 2 ) ", Gaussian(2.0)),
        ("gaussian(gamma=1e-3)", Gaussian(gamma=1e-3)),
        ("poly(3)", Polynomial(3)),
        ("poly", Polynomial()),
        ("poly(degree=3, coef0=0)", Polynomial(3, 0.0)),
        ("polynomial(4, 0.5, gamma=2)", Polynomial(4, 0.5, 2.0)),
        ("0.5*gaussian(2) + poly(2)", 0.5 * Gaussian(2.0) + Polynomial(2)),
        ("linear + linear*linear**2", Linear() + Linear() * Linear() ** 2),
        ("(linear + linear)*linear", (Linear() + Linear()) * Linear()),
        ("(linear + gaussian)/4 + 1/2*linear", (Linear() + Gaussian()) / 4 + 0.5 * Linear()),
        ("normalize(exp(linear))", kernels.normalize(kernels.exp(Linear()))),
        ("poly(linear, [0, 1, 2])", kernels.poly(Linear(), [0, 1, 2])),
        ("poly(k=linear, coefs=[0, 1, 2])", kernels.poly(Linear(), [0, 1, 2])),
        ("compose(linear, log1p)", kernels.compose(Linear(), "log1p")),
        ("bilinear([[1, 0], [0, 2]])", kernels.Bilinear([[1, 0], [0, 2]])),
        ("conjunctions(3, exactly=False)", kernels.Conjunctions(3, exactly=False)),
        ("precomputed", kernels.Precomputed()),
    ],
)
def test_reading(text, wanted):
    assert get(text) == wanted
    assert get(str(wanted)) == wanted


def test_a_class_or_a_kernel_will_do():
    k = Gaussian(2.0)
    assert get(k) is k
    assert get(Gaussian) == Gaussian()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "write a formula"),
        ("linear +", "write a formula"),
        ("gaussan(2)", "did you mean 'gaussian'"),
        ("foo", "unknown kernel 'foo'"),
        ("rbf(2)", "did you mean 'gaussian'"),
        ("linear - linear", r"the signs \+, \*, / and \*\*"),
        ("linear/gaussian", "cannot be computed"),
        ("2/linear", "cannot be computed"),
        ("True*linear", "cannot be computed"),
        ("True*2*linear", "contains no kernel"),
        ("1/0*linear", "cannot be computed"),
        ("linear/0", "divided by a number above 0"),
        ("2 + 3", "contains no kernel"),
        ("2 * 3 * 4", "contains no kernel"),
        ("2**linear", "contains no kernel"),
        ("1j*linear", "cannot be computed"),
        ("1" + "0" * 400 + "*linear", "cannot be computed"),
        ("3", "not a kernel"),
        ("'linear'", "not a kernel"),
        ("exp()", "exp needs k"),
        ("linear(3)", "linear takes 0 parameters"),
        ("gaussian(2, sigma=3)", "given twice"),
        ("gaussian(width=3)", "no parameter 'width'"),
        ("__import__('os').system('true')", "is not a name"),
        ("exp(linear, **{})", "no parameter None"),
        ("[linear]", "neither a kernel"),
        ("warp(linear, <lambda>)", "cannot be written in a formula"),
        ("gaussian(open)", "sigma must be"),
        ("(" * 300 + "linear" + ")" * 300, "write a formula"),
        ("exp(" * 150 + "linear" + ")" * 150, "nested more than 100 deep|write a formula"),
    ],
)
def test_refusing(text, words):
    with pytest.raises(ValueError, match=words):
        get(text)


@pytest.mark.parametrize("text", ["linear**10000000000000000000000", "polynomial(2147483648)"])
def test_powers_beyond_all_measure_are_refused(text):
    with pytest.raises(ValueError, match="degree must be"):
        get(text)


def test_other_things_are_not_kernels():
    for wrong in (3, None, dict):
        with pytest.raises(TypeError, match="a kernel must be a formula"):
            get(wrong)
    with pytest.raises(TypeError, match=r"kernels.Callable\(function\) makes one"):
        get(lambda x, z: 1.0)


def test_functions_are_shown_but_not_read():
    k = kernels.warp("linear", len) + kernels.Callable(max, pairs=False) * kernels.compose("linear", lambda X: X)
    assert str(k) == "warp(linear, <len>) + callable(<max>, pairs=False)*compose(linear, <lambda>)"
    with pytest.raises(ValueError, match="cannot be written in a formula"):
        get(str(k))


def test_large_matrices_are_shown_by_their_size():
    import numpy as np

    assert str(kernels.Bilinear(np.eye(20))) == "bilinear(<20 x 20>)"


def test_a_new_kernel_is_read_by_its_name():
    @kernel("shout")
    class Shout(Kernel):
        """A kernel of a user's."""

    try:
        assert isinstance(get("2*shout"), kernels.Scale)
    finally:
        del MEMBERS["shout"]


def test_kernels_in_files_of_their_own_are_known_by_name():
    assert set(HOMES) == {"substrings", "trees"}
    with pytest.raises(AttributeError):
        kernels.Nothing  # noqa: B018


def test_numbers_in_a_row_are_worked_out():
    assert get("0.5*0.5*linear") == 0.25 * Linear()
    assert get("(1 + 2)*linear + 1") == 3 * Linear() + 1


def test_a_long_formula_is_not_quoted_in_full():
    for text in ("exp(" * 400 + "linear", "+".join(["lineal"] * 400), "gaussian(" + "9" * 400 + "j)", "x" * 400):
        with pytest.raises(ValueError) as caught:
            get(text)
        assert text not in str(caught.value) and len(str(caught.value)) < 600
