"""Alarms as people read them: a list, a page for each, and the words of each kind."""

from __future__ import annotations

from .filters import Filters
from .lists import Line, page
from .one import AlarmPage, one
from .visible import visible

__all__ = ["AlarmPage", "Filters", "Line", "one", "page", "visible"]
