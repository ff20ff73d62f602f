"""Naive Bayes: counts by class, made into a decision. ``learner`` has the learner; ``counts`` and ``kinds`` its parts."""
