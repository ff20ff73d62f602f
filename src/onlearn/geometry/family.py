"""What a geometry is to the rest: a choice with ``start``, which makes its state, and a few facts.

``start(features, outputs)`` returns the state of a learner that has seen nothing; ``features`` counts
the constant one. The facts, where they are not the usual ones, are class attributes or properties:

* ``drifts``: weights change between the steps (l1, l2), so there is no list of hypotheses to vote.
* ``measures``: its steps need the squared length of the example, whatever the rule.
* ``signed``: weights may have either sign, and start at zero or at random.
* ``positive_only``: features must not be negative.
* ``positive_weights``: weights are never negative, so that some problems cannot be learned.
"""

from onlearn.spelling import Family

GEOMETRIES = Family("geometry")

FASTEST = 1e100  # a rate: times the longest step of the heaviest example it is finite
