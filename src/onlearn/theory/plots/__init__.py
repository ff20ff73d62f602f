"""Pictures of mistake-bound learning. Each is a function that returns a Matplotlib figure.

Each has a function ``..._data`` as well, which learns and counts without Matplotlib; the picture draws what it
returns, with the sizes of one's own if it is called with them. One seed gives one picture. ``save`` writes a picture
of ``PICTURES`` as SVG, PNG or a page of HTML.

>>> data = extreme_scenarios_data(sizes=(16, 64), examples=200)
>>> data.unit_rows.mistakes["Perceptron"], data.unit_rows.bounds["Perceptron"]
([16, 64], [16.0, 64.0])
"""

from onlearn.theory.plots.attributes import (
    extreme_scenarios,
    extreme_scenarios_data,
    irrelevant_attributes,
    irrelevant_attributes_data,
    mistakes_by_examples,
    mistakes_by_examples_data,
    ten_of_hundred_rows,
)
from onlearn.theory.plots.catalogue import PICTURES, Picture
from onlearn.theory.plots.course import (
    perceptron_in_action,
    perceptron_in_action_data,
    potential,
    potential_data,
    winnow_weights,
    winnow_weights_data,
)
from onlearn.theory.plots.feature_space import (
    kernel_boundaries,
    kernel_boundaries_data,
    parabola,
    parabola_data,
    squares,
    squares_data,
)
from onlearn.theory.plots.page import FORMATS, render, save

__all__ = [
    "FORMATS",
    "PICTURES",
    "Picture",
    "extreme_scenarios",
    "extreme_scenarios_data",
    "irrelevant_attributes",
    "irrelevant_attributes_data",
    "kernel_boundaries",
    "kernel_boundaries_data",
    "mistakes_by_examples",
    "mistakes_by_examples_data",
    "parabola",
    "parabola_data",
    "perceptron_in_action",
    "perceptron_in_action_data",
    "potential",
    "potential_data",
    "render",
    "save",
    "squares",
    "squares_data",
    "ten_of_hundred_rows",
    "winnow_weights",
    "winnow_weights_data",
]
