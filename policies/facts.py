"""What rules may read of one proposal, as plain JSON, gathered under the locks of the
sums it belongs to. Stored with the revision, so that a later look judges the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from journal import transactions

from . import calendars, locks, money, tools
from .documents import Document, Measure, ToolDefinition
from .models import Observation, Tool

# Events are observed whatever the policy calls its measure of them.
FAILURE = "event:failure"
_EVENTS = "event:"

_WINDOWS = """
SELECT asked.name, seen.currency, count(*), coalesce(sum(seen.amount_minor), 0)
FROM unnest(%s::text[], %s::text[], %s::text[], %s::timestamptz[])
     AS asked (name, measure, key, since)
JOIN policies_observation AS seen
  ON seen.measure = asked.measure AND seen.key = asked.key AND seen.at > asked.since
 AND seen.counts AND seen.proposal <> %s
GROUP BY asked.name, seen.currency
"""
# A revision may belong to other keys than the one before: what it left counts no more.
_OBSERVE = """
WITH now_in AS (
    SELECT * FROM unnest(%(measures)s::text[], %(keys)s::text[], %(amounts)s::bigint[],
        %(currencies)s::text[]) AS given (measure, key, amount_minor, currency)
), left_behind AS (
    UPDATE policies_observation AS old SET counts = false
    WHERE old.proposal = %(proposal)s AND old.counts
      AND NOT starts_with(old.measure, 'event:')
      AND NOT EXISTS (SELECT FROM now_in
                      WHERE now_in.measure = old.measure AND now_in.key = old.key)
)
INSERT INTO policies_observation
    (proposal, measure, key, amount_minor, currency, at, counts)
SELECT %(proposal)s, measure, key, amount_minor, currency, %(at)s, true FROM now_in
ON CONFLICT (proposal, measure, key) DO UPDATE
SET amount_minor = excluded.amount_minor, currency = excluded.currency,
    at = excluded.at, counts = true
"""


@dataclass(frozen=True, slots=True)
class Inputs:
    """One revision of a proposal. `keys` and `before` are what the tool's own reader
    said, never the agent; `uncertain` is from 0 to 1."""

    tool: Tool
    args: Mapping[str, Any]
    agent: str
    unattended: bool
    thread: str
    uncertain: float
    keys: Mapping[str, str]
    before: Mapping[str, Any]
    proposal: str
    resembles: bool = False  # the agent names somebody much like a person here


def measures_of(document: Document, inputs: Inputs) -> list[tuple[str, str]]:
    """The (measure, key) pairs whose sums this proposal is part of. A measure whose key
    is unresolved is left out: the policy blocks such a proposal anyway."""
    return [(name, key) for name, _, key in _own_measures(document, inputs)]


def lock(measures: Iterable[tuple[str, str]]) -> None:
    """Hold the sums still until the transaction ends. Caller holds a transaction."""
    locks.measures(measures)


def collect(document: Document, inputs: Inputs, *, now: datetime) -> dict[str, Any]:
    """The facts of this proposal, with itself counted in every sum it belongs to.

    Caller holds a transaction and has locked `measures_of`.
    """
    transactions.require("Collecting facts")
    definition = tools.definition(inputs.tool)
    return {
        **plain(document, definition, inputs, now=now),
        **_aggregates(document, definition, inputs, now),
    }


def plain(
    document: Document, definition: ToolDefinition, inputs: Inputs, *, now: datetime
) -> dict[str, Any]:
    """The facts that need no database: all but the sums and counts."""
    amount = tools.amount(definition, inputs.args)
    clock = calendars.clock(now, document.zone)
    open_now = {f"{n}_open": c.is_open(now) for n, c in document.calendars.items()}
    return {
        "tool": definition.name,
        "args": tools.in_minor_units(definition, inputs.args),
        "money": _money(amount),
        "agent": {"name": inputs.agent, "unattended": inputs.unattended},
        "thread": inputs.thread,
        "uncertain": float(inputs.uncertain),
        "clock": {**clock, **open_now},
        "before": as_read(inputs.before),
        "keys": dict(inputs.keys),
        **({"resembles": True} if inputs.resembles else {}),
    }


def _money(amount: money.Money | None) -> dict[str, Any]:
    if amount is None:
        return {}
    return {"amount_minor": amount.minor, "currency": amount.currency}


def recount(
    document: Document, inputs: Inputs, stored: Mapping[str, Any], *, now: datetime
) -> dict[str, Any]:
    """These facts of an earlier time with the sums as they are now, itself counted;
    what was observed of the agent stays as it was.

    Caller holds a transaction and has locked `measures_of`.
    """
    transactions.require("Counting anew")
    definition = tools.definition(inputs.tool)
    fresh = _aggregates(document, definition, inputs, now)
    events = {name for name, measure in document.measures.items() if measure.event}
    known = {n: c for n, c in stored.get("count", {}).items() if n in events}
    return {**stored, **fresh, "count": {**fresh["count"], **known}}


def rebase(
    document: Document,
    inputs: Inputs,
    stored: Mapping[str, Any],
    *,
    before: Document,
    then: datetime,
    now: datetime,
) -> dict[str, Any]:
    """The facts of a proposal made under one policy, as another one defines them.

    What both define alike stays as it was stored: rules are asked about what was known
    `then`. Amounts and calendars are read as the new document says; a measure that is
    new, or another one under an old name, is counted `now`, this proposal included.
    Takes no locks: who only judges by it, and lets nothing more happen than was
    decided, needs none.
    """
    definition = tools.definition(inputs.tool)
    amount = tools.amount(definition, inputs.args)
    clock = calendars.clock(then, document.zone)
    open_then = {f"{n}_open": c.is_open(then) for n, c in document.calendars.items()}
    fresh = _aggregates(document, definition, inputs, now)
    kept = {
        name
        for name, measure in document.measures.items()
        if before.measures.get(name) == measure
    }
    return {
        **stored,
        "args": tools.in_minor_units(definition, inputs.args),
        "money": _money(amount),
        "clock": {**clock, **open_then},
        "before": {**stored["before"], **as_read(inputs.before)},
        "keys": {**stored["keys"], **inputs.keys},
        "sum": _either(fresh["sum"], stored["sum"], kept),
        "count": _either(fresh["count"], stored["count"], kept),
        "other_currencies": fresh["other_currencies"],
    }


def _either(
    fresh: Mapping[str, int], stored: Mapping[str, int], kept: set[str]
) -> dict[str, int]:
    return {
        name: stored[name] if name in kept and name in stored else value
        for name, value in fresh.items()
    }


def observe(document: Document, inputs: Inputs, *, at: datetime) -> None:
    """Let this proposal weigh in the sums from now on, as it is in this revision.

    Caller holds a transaction and the locks of `measures_of`.
    """
    transactions.require("Observing")
    definition = tools.definition(inputs.tool)
    rows = [
        (name, key, *_weight(document, definition, measure, inputs.args))
        for name, measure, key in _own_measures(document, inputs)
    ]
    names, keys, amounts, currencies = zip(*rows, strict=True) if rows else ((),) * 4
    with connection.cursor() as cursor:
        cursor.execute(
            _OBSERVE,
            {
                "proposal": inputs.proposal,
                "at": at,
                "measures": list(names),
                "keys": list(keys),
                "amounts": list(amounts),
                "currencies": list(currencies),
            },
        )


def release(proposal: str) -> None:
    """A refused, withdrawn, expired or failed proposal weighs in no sum any more.

    Caller holds a transaction.
    """
    release_many([proposal])


def release_many(proposals: Sequence[str]) -> None:
    """The same for many. What was observed as an event stays: it did happen.

    Caller holds a transaction.
    """
    transactions.require("Releasing observations")
    Observation.objects.filter(proposal__in=proposals, counts=True).exclude(
        measure__startswith=_EVENTS
    ).update(counts=False)


def restore(proposal: str, *, at: datetime) -> None:
    """A failed proposal is tried again: what its revision of `at` observed counts.

    Caller holds a transaction.
    """
    transactions.require("Restoring observations")
    Observation.objects.filter(proposal=proposal, at=at).exclude(
        measure__startswith=_EVENTS
    ).update(counts=True)


def observe_failure(*, agent: str, proposal: str, at: datetime) -> None:
    """An execution of this agent failed; rules count these. Caller holds a
    transaction."""
    transactions.require("Observing a failure")
    Observation.objects.update_or_create(
        proposal=proposal, measure=FAILURE, key=agent, defaults={"at": at}
    )


def _own_measures(document: Document, inputs: Inputs) -> list[tuple[str, Measure, str]]:
    keys = {**inputs.keys, "agent": inputs.agent, "thread": inputs.thread}
    return [
        (name, measure, keys[measure.key])
        for name, measure in document.measures.items()
        if measure.tool == inputs.tool.name and keys.get(measure.key)
    ]


def _weight(
    document: Document,
    definition: ToolDefinition,
    measure: Measure,
    args: Mapping[str, Any],
) -> money.Money:
    """What the proposal adds to a sum; nothing to one that only counts."""
    for field in definition.money:
        if field.amount == measure.amount and field.amount in args:
            return tools.read(field, args)
    return money.Money(0, document.currency if measure.amount else "")


def _aggregates(
    document: Document, definition: ToolDefinition, inputs: Inputs, now: datetime
) -> dict[str, dict[str, Any]]:
    own = _own_measures(document, inputs)
    events = [
        (name, measure) for name, measure in document.measures.items() if measure.event
    ]
    seen = _seen(
        [(name, name, key, now - measure.window) for name, measure, key in own]
        + [(name, FAILURE, inputs.agent, now - m.window) for name, m in events],
        inputs.proposal,
    )
    counts = {name: _count(seen, name) for name, _ in events}
    sums: dict[str, int] = {}
    others = _further(document, definition, inputs.args)
    for name, measure, _ in own:
        counts[name] = _count(seen, name) + 1
        if measure.amount:
            weight = _weight(document, definition, measure, inputs.args)
            by_currency = seen.get(name, {})
            sums[name] = weight.minor + by_currency.get(weight.currency, (0, 0))[1]
            others[name] = sorted(set(by_currency) - {weight.currency})
    return {"sum": sums, "count": counts, "other_currencies": others}


def _further(
    document: Document, definition: ToolDefinition, args: Mapping[str, Any]
) -> dict[str, list[str]]:
    """Currencies of a tool's second and further amounts that rules cannot compare."""
    found = {
        field.amount: tools.read(field, args).currency
        for field in definition.money[1:]
        if field.amount in args
    }
    return {n: [code] for n, code in found.items() if code != document.currency}


Windows = dict[str, dict[str, tuple[int, int]]]


def _seen(asked: list[tuple[str, str, str, datetime]], proposal: str) -> Windows:
    """By measure and currency: how many others, and how much."""
    if not asked:
        return {}
    columns = [list(column) for column in zip(*asked, strict=True)]
    found: Windows = {}
    with connection.cursor() as cursor:
        cursor.execute(_WINDOWS, [*columns, proposal])
        for name, currency, count, total in cursor.fetchall():
            found.setdefault(name, {})[currency] = (count, int(total))
    return found


def _count(seen: Windows, name: str) -> int:
    return sum(count for count, _ in seen.get(name, {}).values())


def as_read(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The reader's facts as rules see them; a text beside a `<name>_currency` is money,
    in minor units.

    What cannot be read is left out: a rule that needs it blocks.
    """
    found: dict[str, Any] = {}
    for name, value in facts.items():
        currency = facts.get(f"{name}_currency")
        if currency is None:
            found[name] = value
            continue
        try:
            found[name] = money.parse(value, currency, negative=True).minor
        except money.InvalidMoney:
            continue
    return found
