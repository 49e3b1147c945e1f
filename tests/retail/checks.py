"""What must hold after a retail run: at the agents, at the store and in the log."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from counterseal_client import Proposal
from journal.models import LogRecord
from policies.choices import ExecutionClass
from reviews.choices import AlarmKind
from reviews.models import Alarm, Execution
from tests.retail.books import Books, Effect
from tests.retail.run import Played
from tests.retail.store import World
from tests.retail.tasks import Call, Done

ASKED = ("proposal.submitted", "request.opened", "decision.recorded")
ALLOWED = (*ASKED, "request.authorized", "grant.issued", "execution.queued")
STEPS = {
    "rejected": (*ASKED, "request.rejected"),
    "executed": (*ALLOWED, "grant.spent", "execution.claimed", "execution.succeeded"),
    "failed": (*ALLOWED, "grant.spent", "execution.claimed", "execution.failed"),
}
# What a killed worker adds between a claim and its end: somebody takes over, or gives
# back what never left the house, which is then claimed once more.
TAKEN_OVER = "execution.reclaimed"
GIVEN_BACK = ("execution.requeued", "execution.claimed")


def check_answers(calls: list[Call], done: dict[int, Done], played: Played) -> None:
    """Each agent heard what the store says in the direct run, or that it was not to."""
    rejected = Done("rejected")
    answers = {number: heard(answer) for number, answer in played.answers.items()}
    expected = {call.number: done.get(call.number, rejected) for call in calls}
    assert not (other := _other(answers, expected)), other


def check_store(expected: World, books: Books) -> None:
    """The final users and orders are those of the direct run."""
    final = books.world()
    assert not (other := _other(final.users, expected.users)), other
    assert not (other := _other(final.orders, expected.orders)), other


def check_kills(played: Played, kills: int) -> None:
    """As many as were asked for, and not all of them between two executions."""
    assert len(played.kills) == kills
    assert not kills or any(kill.claimed for kill in played.kills)


def check_effects(done: dict[int, Done], books: Books) -> None:
    """Each key took effect once, and only the keys of what was executed."""
    executed = sum(end.status == "executed" for end in done.values())
    succeeded = Execution.objects.filter(status="succeeded")
    counts = books.counts()
    took = {key for key, count in counts.items() if count.effects}
    assert len(books.load(Effect)) == len(took) == executed
    assert took == set(succeeded.values_list("idempotency_key", flat=True))
    keys = Execution.objects.values_list("idempotency_key", flat=True)
    assert set(counts) == set(keys)
    assert len(counts) == len(done)


def check_log(played: Played, besides: frozenset[str] = frozenset()) -> None:
    """Every step of every proposal is a record, in order, on the same bytes; every
    record has its place, and places have no gap. `besides` are kinds that may be there
    and are no step."""
    leaves: dict[str, list[Any]] = defaultdict(list)
    records = LogRecord.objects.order_by("position__seq").select_related("position")
    for seq, record in enumerate(records):
        leaf = bytes(record.leaf)
        assert record.position.seq == seq
        assert bytes(record.position.leaf_hash) == hashlib.sha256(b"\0" + leaf).digest()
        leaves[record.proposal].append(json.loads(leaf))
    for answer in played.answers.values():
        history = leaves[answer.id]
        kinds = _steps([leaf["kind"] for leaf in history], {TAKEN_OVER, *besides})
        steps = STEPS[answer.status]
        assert kinds == steps, (answer.id, set(kinds) ^ set(steps), kinds)
        assert {leaf["action_hash"] for leaf in history} == {answer.action_hash}


def check_alarms() -> None:
    """None but of a worker that had been given up and says that it did it too, at a
    tool that gives no word on keys. To the gate that may be a second effect; that it
    was none is for the store's books to say."""
    for alarm in Alarm.objects.all():
        execution = Execution.objects.get(pk=alarm.subject)
        tool = execution.grant.revision.known_tool
        assert alarm.kind == AlarmKind.TWICE, alarm.kind
        assert tool.execution_class == ExecutionClass.QUERYABLE, tool.name
        assert alarm.data.get("fence", execution.fence) < execution.fence, alarm.data


def _steps(kinds: list[str], besides: set[str]) -> tuple[str, ...]:
    """Without what lies beside the way, and what was gone back and forth of it."""
    steps: list[str] = []
    for kind in kinds:
        if kind not in besides:
            steps.append(kind)
        if tuple(steps[-2:]) == GIVEN_BACK:
            del steps[-2:]
    return tuple(steps)


def _other(actual: Mapping[Any, Any], expected: Mapping[Any, Any]) -> dict[Any, Any]:
    """What differs: what there is and what should have been, by what it is of."""
    names = actual.keys() | expected.keys()
    pairs = {name: (actual.get(name), expected.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def heard(answer: Proposal) -> Done:
    """In the words of the direct run."""
    execution = answer.execution
    if execution is None:
        return Done(answer.status)
    return Done(answer.status, execution.code, execution.result)
