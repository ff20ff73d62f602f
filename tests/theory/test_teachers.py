"""Three protocols: exactly the stated numbers of queries and examples, and what happens when an assumption breaks."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import onlearn
from onlearn.theory import (
    DNF,
    AtLeast,
    Conjunction,
    Consistent,
    ContradictionError,
    Disjunction,
    Elimination,
    Halving,
    HelpfulTeacher,
    Predicate,
    QueryLearner,
    QueryTeacher,
    RandomTeacher,
    Xor,
    conjunctions,
)

monotone_targets = st.integers(1, 40).flatmap(
    lambda n: st.sets(st.integers(1, n)).map(lambda literals: Conjunction(literals, n=n))
)
targets = st.integers(1, 40).flatmap(
    lambda n: st.lists(st.sampled_from([0, 1, -1]), min_size=n, max_size=n).map(
        lambda signs: Conjunction([j * s for j, s in enumerate(signs, 1) if s], n=n)
    )
)


def positive_example(target, seed):
    x = np.random.default_rng(seed).random(target.n) < 0.5
    for literal in target.literals:
        x[abs(literal) - 1] = literal > 0
    return x


# ---------------------------------------------------------------- queries


@settings(max_examples=100)
@given(monotone_targets)
def test_n_queries_find_a_monotone_conjunction(target):
    lesson = QueryTeacher(target).run()
    assert (lesson.queries, lesson.examples) == (target.n, 0)
    assert lesson.hypothesis == target and lesson.exact
    assert len(lesson.steps) == len(lesson.X) == len(lesson.y) == target.n
    assert lesson.steps[-1] == target and (target(lesson.X) == lesson.y).all()
    # An answer "positive" removes an attribute from the hypothesis, which was wrong there.
    assert lesson.mistakes == target.n - len(target.literals) <= lesson.bound


@settings(max_examples=100)
@given(targets, st.integers(0, 1000))
def test_n_queries_and_a_positive_example_find_any_conjunction(target, seed):
    lesson = QueryTeacher(target, positive=positive_example(target, seed)).run()
    assert (lesson.queries, lesson.examples) == (target.n, 1)
    assert lesson.exact and lesson.mistakes <= lesson.bound
    assert len(lesson.steps) == target.n + 1


def test_queries_of_the_books_target():
    lesson = QueryTeacher(Conjunction([2, 3, 4, 5, 100], n=100)).run()
    assert lesson.queries == 100 and str(lesson.hypothesis) == "x2 & x3 & x4 & x5 & x100"
    assert not lesson.X[0, 0] and lesson.X[0, 1:].all() and lesson.y[:6].tolist() == [1, 0, 0, 0, 0, 1]


def test_queries_without_a_positive_example_are_for_monotone_conjunctions():
    with pytest.raises(ValueError, match=r"^All ones is no positive example of x1 & ~x2: .* positive=\.$"):
        QueryTeacher(Conjunction([1, -2], n=3)).run()
    with pytest.raises(ValueError, match="must be one of x1 & ~x2"):
        QueryTeacher(Conjunction([1, -2], n=3), positive=[1, 1, 0])
    with pytest.raises(ValueError, match="only after one positive example"):
        QueryLearner(3).propose()


def test_queries_about_another_concept_do_not_find_it_or_contradict():
    lesson = QueryTeacher(AtLeast(2, [1, 2, 3])).run()  # all ones but one: always positive
    assert not lesson.exact and lesson.hypothesis == Conjunction([], n=3)
    assert QueryTeacher(Predicate(lambda x: x[0] and x[2], n=3)).run().hypothesis == Conjunction([1, 3], n=3)


def test_another_learner_may_ask():
    class Bisection:
        """Finds the only relevant attribute by halving the candidates."""

        def __init__(self, n):
            self.n, self.left = n, list(range(n))

        def propose(self):
            if len(self.left) == 1:
                return None
            self.asked = self.left[: len(self.left) // 2]
            return [j in self.asked for j in range(self.n)]

        def predict_one(self, x):
            return False

        def learn_one(self, x, y):
            self.left = self.asked if y else [j for j in self.left if j not in self.asked]

    lesson = QueryTeacher(Conjunction([11], n=16)).run(Bisection(16))
    assert lesson.queries == 4 and lesson.hypothesis.left == [10]
    assert lesson.steps == () and lesson.bound is None and lesson.mistakes == lesson.y.sum()


# ---------------------------------------------------------------- a helpful teacher


@settings(max_examples=100)
@given(monotone_targets)
def test_k_plus_1_examples_teach_a_monotone_conjunction(target):
    lesson = HelpfulTeacher(target).run()
    assert (lesson.queries, lesson.examples) == (0, len(target.literals) + 1)
    assert lesson.exact and len(lesson.steps) == lesson.examples
    assert lesson.mistakes <= 1


@settings(max_examples=100)
@given(targets)
def test_negations_need_one_more_example(target):
    lesson = HelpfulTeacher(target).run()
    k, negated = len(target.literals), not target.monotone
    assert lesson.examples == k + 1 + (negated and k < target.n)
    assert lesson.exact and lesson.mistakes <= 2


def left_after(X, y, concepts):
    return [concept for concept in concepts if (concept(X) == y).all()]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_its_examples_leave_no_other_conjunction(n):
    everything, monotone = list(conjunctions(n)), list(conjunctions(n, monotone=True))
    for target in everything:
        X, y = HelpfulTeacher(target).examples()
        assert left_after(X, y, monotone if target.monotone else everything) == [target]
        # CON and Halving over the class need no other examples to find it.
        for learner in (Consistent, Halving):
            assert HelpfulTeacher(target).run(learner(monotone if target.monotone else everything)).exact


def test_no_teacher_needs_fewer():
    """By trying all sets of examples: k + 1 for k < n monotone literals, k + 2 if they may be negated."""
    n = 3
    cube = np.array(list(product([False, True], repeat=n)))

    def fewest(target, concepts):
        sizes = range(len(cube) + 1)
        subsets = (list(rows) for size in sizes for rows in combinations(range(len(cube)), size))
        return next(len(r) for r in subsets if left_after(cube[r], target(cube[r]), concepts) == [target])

    for target in (Conjunction([], n=n), Conjunction([2], n=n), Conjunction([1, 3], n=n)):
        assert fewest(target, list(conjunctions(n, monotone=True))) == len(target.literals) + 1
    for target in (Conjunction([-2], n=n), Conjunction([1, -3], n=n)):
        assert fewest(target, list(conjunctions(n))) == len(target.literals) + 2


def test_other_kinds_of_the_same_meaning_are_taught_too():
    assert HelpfulTeacher(DNF([[1, 2], [1, -2]], n=4)).run().hypothesis == Conjunction([1], n=4)
    for concept in (Disjunction([1, 2]), Xor([1, 2]), Conjunction([1, -1]), Predicate(any, n=20)):
        with pytest.raises(ValueError, match=r"^A helpful teacher teaches conjunctions that [^\n]*\.$"):
            HelpfulTeacher(concept)


# ---------------------------------------------------------------- nature


@settings(max_examples=100)
@given(targets, st.integers(0, 1000), st.sampled_from(["uniform", "balanced", "sparse"]))
def test_random_examples_keep_the_bound(target, seed, how):
    if how != "uniform" and not target.literals:
        return
    lesson = RandomTeacher(target, m=60, how=how, random_state=seed).run()
    assert (lesson.queries, lesson.examples) == (0, 60) and len(lesson.steps) == 60
    assert lesson.mistakes <= lesson.bound == target.n + (not target.monotone)
    assert (lesson.hypothesis(lesson.X) == lesson.y).all()
    assert set(target.literals) <= set(lesson.hypothesis.literals)  # it only errs on the side of too many literals


def test_the_same_examples_for_every_learner():
    teacher = RandomTeacher(Conjunction([1, -3], n=5), m=80, random_state=1)
    learners = [Elimination(5), Halving(conjunctions(5)), Consistent(conjunctions(5))]
    lessons = [teacher.run(learner) for learner in learners]
    assert all((lesson.X == lessons[0].X).all() and lesson.exact for lesson in lessons)
    assert [lesson.mistakes for lesson in lessons] == [learner.mistakes for learner in learners]
    assert "80 examples" in str(lessons[0]) and "x1 & ~x3" in str(lessons[0])


@pytest.mark.parametrize("estimator", [onlearn.Perceptron, onlearn.Winnow])
def test_estimators_are_learners_too(estimator):
    teacher = RandomTeacher(Disjunction([1, 5], n=10), m=200, how="balanced", random_state=0)
    lesson = teacher.run(estimator())
    assert lesson.examples == 200 and 0 < lesson.mistakes < 60
    assert isinstance(lesson.hypothesis, estimator) and lesson.steps == () and lesson.bound is None


def test_sparse_examples_stay_sparse():
    target = Conjunction([3, 9], n=50_000)
    lesson = RandomTeacher(target, m=100, how="sparse", random_state=0).run()
    assert sp.issparse(lesson.X) and (target(lesson.X) == lesson.y).all()
    assert lesson.exact and lesson.mistakes <= 30


def test_noise_is_told_at_the_example_where_it_shows():
    with pytest.raises(ContradictionError, match=r"^Example \d+ leaves no concept"):
        RandomTeacher(Conjunction([1], n=5), m=500, noise=0.2, random_state=0).run()
    with pytest.raises(ContradictionError, match=r"^Example \d+ leaves no concept"):
        RandomTeacher(Disjunction([1, 2], n=5), m=500, random_state=0).run(Halving(conjunctions(5)))


@pytest.mark.parametrize(
    "call",
    [
        lambda: RandomTeacher(Disjunction([1, 2])).run(),
        lambda: RandomTeacher(any),
        lambda: QueryTeacher(lambda x: True),
        lambda: HelpfulTeacher("x1"),
        lambda: RandomTeacher(Conjunction([1]), m=0).run(),
        lambda: QueryTeacher(Conjunction([1], n=2), positive=[1]),
        lambda: QueryLearner(0),
    ],
)
def test_bad_arguments_get_one_sentence(call):
    with pytest.raises(ValueError, match=r"^[^\n]*\.$"):
        call()
