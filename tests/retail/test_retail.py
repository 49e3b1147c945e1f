"""The retail acceptance run: every world-changing call of every task goes through the
gate, and the store ends exactly as if the calls had been made directly."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from journal.models import LogRecord
from reviews.models import Execution
from tests.stack import Stack

from . import tasks
from .actors import Script
from .books import Books
from .run import Played, Run, store_service
from .tasks import Call, Done

ASKED = ("proposal.submitted", "request.opened", "decision.recorded")
ALLOWED = (*ASKED, "request.authorized", "grant.issued", "execution.queued")
STEPS = {
    "rejected": (*ASKED, "request.rejected"),
    "executed": (*ALLOWED, "grant.spent", "execution.claimed", "execution.succeeded"),
    "failed": (*ALLOWED, "grant.spent", "execution.claimed", "execution.failed"),
}
# What a killed worker adds between a claim and its end.
AGAIN = ("execution.reclaimed", "execution.requeued")


def nothing(call: Call) -> bool:
    return False


def every_third(call: Call) -> bool:
    return call.number % 3 == 0


VARIANTS = [
    pytest.param(nothing, False, id="plain"),
    pytest.param(every_third, False, id="every-third-rejected"),
    pytest.param(nothing, True, id="worker-killed"),
]


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("rejects", "killing"), VARIANTS)
def test_the_store_ends_as_in_a_direct_run(
    rejects: Script,
    killing: bool,
    retail: Stack,
    data: Path,
    tmp_path: Path,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    calls = tasks.calls(data, proof_n(52, tasks.EVERY_TASK))
    calls += tasks.beside(data, calls)
    kills = proof_n(2, 10) if killing else 0
    expected = tasks.world(data)
    done = tasks.run_directly(expected, calls, rejects)

    with store_service(tmp_path, data) as (url, books):
        run = Run(retail, url, books, data, calls)
        played = run.play(rejects, kills)

    assert len(played.kills) == kills
    assert not kills or any(kill.claimed for kill in played.kills)
    check_answers(calls, done, played)
    final = books.world()
    assert final.users == expected.users
    assert final.orders == expected.orders
    check_effects(done, books)
    check_log(played)
    line = told(request.node.callspec.id, calls, played, books)
    with capsys.disabled():
        print(f"\nretail, {line}")  # noqa: T201 - the counts are the point
    record_proof("retail", line)


def check_answers(calls: list[Call], done: dict[int, Done], played: Played) -> None:
    """Each agent heard what the store says in the direct run, or that it was not to."""
    rejected = Done("rejected")
    heard = {number: _heard(answer) for number, answer in played.answers.items()}
    assert heard == {call.number: done.get(call.number, rejected) for call in calls}


def _heard(answer) -> Done:
    execution = answer.execution
    if execution is None:
        return Done(answer.status)
    return Done(answer.status, execution.code, execution.result)


def check_effects(done: dict[int, Done], books: Books) -> None:
    """Each key took effect once, and only the keys of what was executed."""
    executed = sum(one.status == "executed" for one in done.values())
    succeeded = Execution.objects.filter(status="succeeded")
    counts = books.counts()
    took = {key for key, count in counts.items() if count.effects}
    assert books.effects() == len(took) == executed
    assert took == set(succeeded.values_list("idempotency_key", flat=True))
    keys = Execution.objects.values_list("idempotency_key", flat=True)
    assert set(counts) == set(keys)
    assert len(counts) == len(done)


def check_log(played: Played) -> None:
    """Every step of every proposal is a record, in order, on the same bytes; every
    record has its place, and places have no gap."""
    leaves: dict[str, list[Any]] = defaultdict(list)
    records = LogRecord.objects.order_by("position__seq").select_related("position")
    for seq, record in enumerate(records):
        leaf = bytes(record.leaf)
        assert record.position.seq == seq
        assert bytes(record.position.leaf_hash) == hashlib.sha256(b"\0" + leaf).digest()
        leaves[record.proposal].append(json.loads(leaf))
    for answer in played.answers.values():
        said = leaves[answer.id]
        kinds = tuple(leaf["kind"] for leaf in said if leaf["kind"] not in AGAIN)
        assert kinds == STEPS[answer.status]
        assert {leaf["action_hash"] for leaf in said} == {answer.action_hash}


def told(variant: str, calls: list[Call], played: Played, books: Books) -> str:
    """The counts, and where the time of a call went."""
    became = Counter(_word(_heard(answer)) for answer in played.answers.values())
    counts = books.counts().values()
    kills = played.kills
    words = [
        f"{variant}: {len(calls)} calls (the last two of tools that no task uses)"
        f" in {played.seconds:.0f} s",
        *(f"{number} {word}" for word, number in sorted(became.items())),
        f"{books.effects()} effects, each once",
        f"{len(kills)} kills ({sum(kill.claimed for kill in kills)} executions left"
        f" claimed, {sum(kill.happened for kill in kills)} of them done at the store)",
        f"keys asked again {sum(count.asked > 1 for count in counts)}",
        f"keys looked up {sum(count.looked_up > 0 for count in counts)}",
        f"{LogRecord.objects.count()} log records",
        f"a call takes {median(played.waits):.2f} s ({_stages()})",
    ]
    return ", ".join(words)


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
