"""The counts of a retail run, and where the time of a call went, in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import Any

from journal.models import LogRecord
from reviews.models import Execution
from tests.retail.books import Books, Effect
from tests.retail.checks import heard
from tests.retail.run import Kill, Played
from tests.retail.tasks import Call, Done


def describe_run(
    variant: str, calls: list[Call], played: Played, books: Books, struck: str
) -> str:
    """The counts, what struck, and where the time of a call went."""
    became = Counter(_word(heard(answer)) for answer in played.answers.values())
    counts = books.counts().values()
    words = [
        f"{variant}: {len(calls)} calls (the last two of tools that no task uses)"
        f" in {played.seconds:.0f} s",
        *(f"{number} {word}" for word, number in sorted(became.items())),
        f"{len(books.load(Effect))} effects, each once",
        struck,
        f"keys asked again {sum(count.asked > 1 for count in counts)}",
        f"keys looked up {sum(count.looked_up > 0 for count in counts)}",
        f"{LogRecord.objects.count()} log records",
        f"a call takes {median(played.waits):.2f} s ({_stages()})",
    ]
    return ", ".join(words)


def describe_kills(kills: Sequence[Kill]) -> str:
    """What the kills of one worker left."""
    return (
        f"{len(kills)} kills ({sum(kill.claimed for kill in kills)} executions left"
        f" claimed, {sum(kill.happened for kill in kills)} of them done at the store)"
    )


def _word(done: Done) -> str:
    return f"{done.status} {done.code}".strip()


def _stages() -> str:
    """Medians over what was executed, by the database's clock."""
    times = ("proposal__created_at", "queued_at", "claimed_at", "finished_at")
    rows: Iterable[tuple[Any, ...]] = Execution.objects.values_list(*times)
    names = ("decided", "claimed", "performed")
    spans = [[span(*pair) for pair in pairwise(row)] for row in rows]
    medians = [median(column) for column in zip(*spans, strict=True)]
    return ", ".join(f"{name} {m:.2f}" for name, m in zip(names, medians, strict=True))


def span(begun: datetime, ended: datetime) -> float:
    """Seconds."""
    return (ended - begun).total_seconds()
