"""Learning in the dual: additive learners that keep support examples instead of weights of features."""
