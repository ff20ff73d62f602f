"""Naive Bayes: counts by class, made into a decision.

``counts`` is what is kept, ``kinds`` what is made of it, ``training`` both for columns of several kinds, and
``learner`` the learner. ``findings`` adds up what learners found in shards of the rows.
"""
