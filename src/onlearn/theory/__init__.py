"""Learning theory: mistake bounds, separability, certificates; concepts, teachers and learners of conjunctions."""

from onlearn.theory import bounds
from onlearn.theory.adversary import hadamard_sequence
from onlearn.theory.certificate import Bound, Certificate, certify
from onlearn.theory.concept_class import conjunctions, functions
from onlearn.theory.concepts import DNF, AtLeast, Concept, Conjunction, Disjunction, Predicate, Xor
from onlearn.theory.elimination import Elimination
from onlearn.theory.halving import Consistent, Halving, Majority
from onlearn.theory.learner import ConceptLearner, ContradictionError
from onlearn.theory.linear_threshold import LinearThreshold
from onlearn.theory.minimal_conjunction import minimal_consistent
from onlearn.theory.separable import Separability, separable, simplex_margin
from onlearn.theory.teachers import HelpfulTeacher, QueryLearner, QueryTeacher, RandomTeacher, Transcript

__all__ = [
    "DNF",
    "AtLeast",
    "Bound",
    "Certificate",
    "Concept",
    "ConceptLearner",
    "Conjunction",
    "Consistent",
    "ContradictionError",
    "Disjunction",
    "Elimination",
    "Halving",
    "HelpfulTeacher",
    "LinearThreshold",
    "Majority",
    "Predicate",
    "QueryLearner",
    "QueryTeacher",
    "RandomTeacher",
    "Separability",
    "Transcript",
    "Xor",
    "bounds",
    "certify",
    "conjunctions",
    "functions",
    "hadamard_sequence",
    "minimal_consistent",
    "separable",
    "simplex_margin",
]
