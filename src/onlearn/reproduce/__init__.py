"""Published tables, reproduced: each function trains the learners of one table and shows both test errors."""

from onlearn.reproduce.ocr import ocr
from onlearn.reproduce.spam import spam
from onlearn.reproduce.table import Row, Table

__all__ = ["Row", "Table", "ocr", "spam"]
