"""Published tables, made again: each function learns what the table is about and puts ours beside the published."""

from onlearn.reproduce.ocr import ocr
from onlearn.reproduce.spam import spam
from onlearn.reproduce.table import Row, Table

__all__ = ["Row", "Table", "ocr", "spam"]
