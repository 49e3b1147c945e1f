"""`make bench ARGS=--profile`: what one action costs, stage by stage: its statements,
which function sends each, and how much of the time is spent in the database."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from django.db import connection

from . import callables
from .clients import ProductClient
from .report import format_ms, print_text
from .seed import Seed

ROOT = Path(__file__).resolve().parent.parent
_WARM_UP, _ACTIONS = 10, 40
_WIDTH = 100  # of a statement on the page
# They send the statements of others.
_SENDING_MODULES = {
    ("journal", name) for name in ("statements", "prepared_queries", "writes")
}


@dataclass
class Stage:
    """One of the three operations, over all actions."""

    seconds: float = 0.0
    waiting: float = 0.0  # of these, for an answer of the database
    statements: Counter[tuple[str, str]] = field(default_factory=Counter)

    def watch(
        self,
        execute: Callable[..., Any],
        sql: str,
        params: Any,
        many: bool,
        context: Any,
    ) -> Any:
        """Count a statement; a wrapper of Django's `execute`."""
        began = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            self.waiting += time.perf_counter() - began
            self.statements[_find_sender(sys._getframe()), _shorten(sql)] += 1


def print_profile(seed: Seed) -> None:
    """Profile actions of one client, one after the other."""
    client = ProductClient(seed, 0)
    for _ in range(_WARM_UP):
        client.action()
    stages = {name: Stage() for name in ("propose", "decide", "perform")}
    for _ in range(_ACTIONS):
        stored = _measure(stages["propose"], client.propose)
        request = _measure(stages["decide"], client.decide, stored)
        _measure(stages["perform"], client.perform, request.proposal_id)
    callables.empty_broker()
    for name, stage in stages.items():
        _print_stage(name, stage)
    count = sum(stage.statements.total() for stage in stages.values())
    seconds = sum(stage.seconds for stage in stages.values())
    print_text(
        f"\nAn action: {count / _ACTIONS:.1f} statements,"
        f" {format_ms(seconds / _ACTIONS)}, n = {_ACTIONS}"
    )


def _measure(stage: Stage, step: Callable[..., Any], *args: Any) -> Any:
    with connection.execute_wrapper(stage.watch):
        began = time.perf_counter()
        result = step(*args)
        stage.seconds += time.perf_counter() - began
    return result


def _print_stage(name: str, stage: Stage) -> None:
    print_text(
        f"\n{name}: {stage.statements.total() / _ACTIONS:.1f} statements,"
        f" {format_ms(stage.seconds / _ACTIONS)},"
        f" {format_ms(stage.waiting / _ACTIONS)} of it in the database"
    )
    for (sender, sql), count in stage.statements.items():
        print_text(f"  {count / _ACTIONS:4.1f}  {sender:50s} {sql}")


def _find_sender(frame: FrameType | None) -> str:
    """The innermost function on this stack outside `_SENDING_MODULES`, as
    `module:function`."""
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(ROOT):
            parts = file.relative_to(ROOT).with_suffix("").parts
            if parts[0] not in (".venv", "bench") and parts not in _SENDING_MODULES:
                return f"{'.'.join(parts)}:{frame.f_code.co_name}"
        frame = frame.f_back
    return "bench"


def _shorten(sql: str) -> str:
    """The verb and the tables of a long statement; its columns say little."""
    text = " ".join(sql.replace('"', "").split())
    verb, separator, rest = text.partition(" FROM ")
    if separator and verb.startswith("SELECT") and len(verb) > _WIDTH // 3:
        text = f"SELECT … FROM {rest}"  # noqa: S608 printed, not sent
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
