"""The log explorer: records as sentences, filtered, one by one, and as exports."""

from __future__ import annotations

from . import access
from .filters import Filters
from .lines import Event, Told, history
from .pages import LogPage, RecordPage, numbered, page, record
from .sentences import HIDDEN_NAME

__all__ = [
    "HIDDEN_NAME",
    "Event",
    "Filters",
    "LogPage",
    "RecordPage",
    "Told",
    "access",
    "history",
    "numbered",
    "page",
    "record",
]
