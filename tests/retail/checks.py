"""What must hold after a retail run: at the agents, at the store and in the log."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from typing import Any

from holdpoint_client import Proposal
from journal.models import LogRecord
from reviews.models import Execution

from .books import Books
from .run import Played
from .store import World
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


def check_answers(calls: list[Call], done: dict[int, Done], played: Played) -> None:
    """Each agent heard what the store says in the direct run, or that it was not to."""
    rejected = Done("rejected")
    answers = {number: heard(answer) for number, answer in played.answers.items()}
    assert answers == {call.number: done.get(call.number, rejected) for call in calls}


def check_store(expected: World, books: Books) -> None:
    """The final users and orders are those of the direct run."""
    final = books.world()
    assert final.users == expected.users
    assert final.orders == expected.orders


def check_kills(played: Played, kills: int) -> None:
    """As many as were asked for, and not all of them between two executions."""
    assert len(played.kills) == kills
    assert not kills or any(kill.claimed for kill in played.kills)


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


def heard(answer: Proposal) -> Done:
    """In the words of the direct run."""
    execution = answer.execution
    if execution is None:
        return Done(answer.status)
    return Done(answer.status, execution.code, execution.result)
