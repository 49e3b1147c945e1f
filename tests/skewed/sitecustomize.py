# ruff: noqa: INP001 - found by its folder, not by a package
"""Read by Python itself as it starts, where this folder is in PYTHONPATH: every way to
ask for the time of day is wrong by SKEW seconds, or by as many as the file SKEW_FROM
says at that moment. What only measures spans is right, as with a real wrong clock.
(libfaketime breaks waiting for an event on this glibc.)"""

from __future__ import annotations

import ctypes
import datetime
import gc
import os
import time
from pathlib import Path
from typing import Any

SKEW, FROM = int(os.environ.get("SKEW", "0")), os.environ.get("SKEW_FROM")
_time, _time_ns, _now = time.time, time.time_ns, datetime.datetime.now


def _skew() -> int:
    return int(Path(FROM).read_text()) if FROM else SKEW


def _wrong_now(cls: type[datetime.datetime], tz: Any = None) -> datetime.datetime:
    return _now(tz) + datetime.timedelta(seconds=_skew())


def _wrong_utcnow(cls: type[datetime.datetime]) -> datetime.datetime:
    return _now(datetime.UTC).replace(tzinfo=None) + datetime.timedelta(seconds=_skew())


def _set(**methods: Any) -> None:
    """A type written in C takes no assignment; its dictionary does."""
    (members,) = gc.get_referents(datetime.datetime.__dict__)
    members.update({name: classmethod(made) for name, made in methods.items()})
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(datetime.datetime))


if SKEW or FROM:
    time.time = lambda: _time() + _skew()
    time.time_ns = lambda: _time_ns() + _skew() * 1_000_000_000
    _set(now=_wrong_now, utcnow=_wrong_utcnow)
