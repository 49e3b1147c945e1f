"""Batches as people see them: the list, one that waits, and what came of one that was
decided (ux.md 4.3)."""

from __future__ import annotations

from . import changes, kept, notes, samples, timing
from .as_shown import Shown
from .choice import Selection
from .lists import Listed, after, listed, sentences
from .loaded import Loaded, load
from .page import BatchPage
from .result import ResultPage
from .rows import amount_of, peek
from .titles import called
from .within import Within, containing, of_many

__all__ = [
    "BatchPage",
    "Listed",
    "Loaded",
    "ResultPage",
    "Selection",
    "Shown",
    "Within",
    "after",
    "amount_of",
    "called",
    "changes",
    "containing",
    "kept",
    "listed",
    "load",
    "notes",
    "of_many",
    "peek",
    "samples",
    "sentences",
    "timing",
]
