"""Where errors come from: users' code, ours, or that of others."""

from __future__ import annotations

import inspect
import json

import pytest

from onlearn.cli.origin import user_error
from onlearn.data import DataError
from onlearn.models import open_model


def never(error):
    return False


def sentences(error):
    return isinstance(error, DataError)


def caught(function, *arguments):
    """The error that a function raises; its traceback begins in there."""
    with pytest.raises(Exception) as found:
        function(*arguments)
    error = found.value
    error.__traceback__ = error.__traceback__.tb_next
    return error


def mine():
    raise ValueError("mine")


def wrapped():
    try:
        mine()
    except ValueError as error:
        raise DataError("ours") from error


def circular():
    try:
        raise DataError("a")
    except DataError as error:
        raise error from error


PLACE = f"{__file__}, line {inspect.getsourcelines(mine)[1] + 1}"


def test_users_code():
    error, place = user_error(caught(mine), never)
    assert (str(error), place) == ("mine", PLACE)
    error, place = user_error(caught(wrapped), sentences)
    assert (str(error), place) == ("mine", PLACE)


def test_an_error_that_is_its_own_cause():
    assert user_error(caught(circular), sentences) is None


def test_code_of_ours_and_of_others(tmp_path):
    assert user_error(caught(open_model, tmp_path / "none"), never) is None
    assert user_error(caught(json.loads, "{"), never) is None
    assert user_error(caught(open, tmp_path / "none"), never) is None


def test_a_file_that_is_named_by_ours():
    error = caught(open_model, "none")
    error.__cause__ = caught(mine)
    assert user_error(error, never) is None
