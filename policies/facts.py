"""The facts of one proposal that rules may read, and the rolling sums and counts behind
them.

Facts are plain JSON, collected under the locks of the sums that the proposal belongs
to, and stored with the revision, so that a later evaluation gives the same result. The
sums are over Observation rows: one for each measure that a proposal counts in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from journal import transactions, writes
from journal.statements import Statement

from . import amounts, budgets, calendars, money, tools
from .documents import LONGEST, LONGEST_WINDOW, Document, Measure, ToolDefinition
from .models import Observation, Tool

# Events are recorded under a fixed name, whatever the policy calls its measure of them.
FAILURE = "event:failure"
_EVENTS = "event:"
# A waiting proposal counts in every window: it runs within this time or never.
LONGEST_WAIT: timedelta = LONGEST + LONGEST_WINDOW

# Count and total of the other proposals in each window, as a JSON list. Each window
# ends at `window_end`, or when the statement begins.
WINDOWS_COLUMN = """
(SELECT json_agg(json_build_array(found.name, found.currency, found.count, found.total))
 FROM (SELECT asked.name, seen.currency, count(*) AS count,
              coalesce(sum(seen.amount_minor), 0) AS total
       FROM unnest(%(window_names)s::text[], %(window_measures)s::text[],
                   %(window_keys)s::text[], %(window_spans)s::interval[])
            AS asked (name, measure, key, span)
       JOIN policies_observation AS seen
         ON seen.measure = asked.measure AND seen.key = asked.key AND seen.counts
        AND seen.ran_by > coalesce(%(window_end)s::timestamptz, statement_timestamp())
                          - asked.span
        AND seen.proposal <> %(window_proposal)s
       GROUP BY asked.name, seen.currency) AS found)
"""
_WINDOWS = Statement(f"SELECT {WINDOWS_COLUMN}")
# A revision may belong to other keys than the one before it. The observations under
# keys that it left stop counting.
_OBSERVE = (
    (
        "observation_given",
        """
        SELECT * FROM unnest(%(measures)s::text[], %(keys)s::text[],
            %(amounts)s::bigint[], %(currencies)s::text[])
            AS given (measure, key, amount_minor, currency)
        """,
    ),
    (
        "observation_left",
        """
        UPDATE policies_observation AS old SET counts = false
        WHERE old.proposal = %(proposal)s AND old.counts
          AND NOT starts_with(old.measure, 'event:')
          AND NOT EXISTS (SELECT FROM observation_given AS given
                          WHERE given.measure = old.measure AND given.key = old.key)
        """,
    ),
    (
        "observation_added",
        """
        INSERT INTO policies_observation
            (proposal, measure, key, amount_minor, currency, at, ran_by, ran, counts)
        SELECT %(proposal)s, measure, key, amount_minor, currency,
               %(at)s::timestamptz, %(ran_by)s::timestamptz, false, true
        FROM observation_given
        ON CONFLICT (proposal, measure, key) DO UPDATE
        SET amount_minor = excluded.amount_minor, currency = excluded.currency,
            at = excluded.at, ran_by = excluded.ran_by, ran = false, counts = true
        RETURNING proposal
        """,
    ),
)
_MARK_RAN = (
    (
        "observation_ran",
        """
        UPDATE policies_observation SET ran_by = %(at)s, ran = true
        WHERE proposal = %(proposal)s AND counts
          AND NOT starts_with(measure, 'event:')
        RETURNING proposal
        """,
    ),
)


@dataclass(frozen=True, slots=True)
class RevisionInputs:
    """One revision of a proposal. `keys` and `before` come from the tool's reader,
    never from the agent. `uncertain` is from 0 to 1; `proposal` is the proposal's
    id."""

    tool: Tool
    args: Mapping[str, Any]
    agent: str
    unattended: bool
    thread: str
    uncertain: float
    keys: Mapping[str, str]
    before: Mapping[str, Any]
    proposal: str
    resembles: bool = False  # it names somebody whose name is like that of a person
    # How many deciders the agent's claims keep out (`barred`), and how many are `left`.
    narrowed: Mapping[str, int] = field(default_factory=dict)


def list_measures(document: Document, inputs: RevisionInputs) -> list[tuple[str, str]]:
    """The (measure, key) pairs of the sums that this proposal is part of. A measure
    whose key is unresolved is left out: the evaluation blocks such a proposal."""
    return [(name, key) for name, _, key in _list_own_measures(document, inputs)]


def collect_facts(
    document: Document,
    inputs: RevisionInputs,
    *,
    now: datetime,
    windows: Windows | None = None,
    plain: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The facts of this proposal. Every sum and count includes the proposal itself.
    `windows` holds the sums of other proposals, if the caller has read them; otherwise
    this takes a query. `plain` are those of `build_plain_facts`, if the caller has
    built them. Caller holds a transaction and the locks of `list_measures`."""
    transactions.require_transaction("Collecting facts")
    definition = tools.load_definition(inputs.tool)
    return {
        **(plain or build_plain_facts(document, definition, inputs, now=now)),
        **_compute_aggregates(document, definition, inputs, now, windows),
    }


def build_plain_facts(
    document: Document,
    definition: ToolDefinition,
    inputs: RevisionInputs,
    *,
    now: datetime,
) -> dict[str, Any]:
    """The facts that need no database: all except the sums and counts."""
    clock = calendars.build_clock_facts(now, document.zone)
    open_now = {f"{n}_open": c.is_open(now) for n, c in document.calendars.items()}
    return {
        "tool": definition.name,
        "args": amounts.to_minor_units(definition, inputs.args),
        **_build_money_facts(document, definition, inputs),
        "agent": {"name": inputs.agent, "unattended": inputs.unattended},
        "thread": inputs.thread,
        "uncertain": float(inputs.uncertain),
        "clock": {**clock, **open_now},
        "before": parse_reader_facts(inputs.before),
        "keys": dict(inputs.keys),
        **({"resembles": True} if inputs.resembles else {}),
        **({"narrowed": dict(inputs.narrowed)} if inputs.narrowed else {}),
    }


def compute_moved_money(
    document: Document, definition: ToolDefinition, inputs: RevisionInputs
) -> money.Money | None:
    """The total money that the proposal moves, as rules and ceilings compare it (see
    `money.combine_amounts`). None where it moves none."""
    moved = _list_moved(definition, inputs)
    return money.combine_amounts([amount.money for amount in moved], document.currency)


def sum_moved_money(
    definition: ToolDefinition, inputs: RevisionInputs
) -> dict[str, int]:
    """The minor units that the proposal moves of each currency. An amount of which no
    figure is known is at least `money.WHOLE`. Raises `InvalidMoney`."""
    return money.sum_by_currency(
        amount.money for amount in _list_moved(definition, inputs)
    )


def _build_money_facts(
    document: Document, definition: ToolDefinition, inputs: RevisionInputs
) -> dict[str, Any]:
    """The facts `money` and, where there are any, `unread_amounts` (those that the
    reader should have given) and `absent_amounts` (`amounts.list_absent_wholes`)."""
    before = parse_reader_facts(inputs.before)
    amount = compute_moved_money(document, definition, inputs)
    if amount is None and any(
        sent.absent for sent in amounts.list_absent(definition, inputs.args)
    ):
        amount = money.Money(0, document.currency)
    facts: dict[str, Any] = {"money": {}}
    if amount:
        facts["money"] = {"amount_minor": amount.minor, "currency": amount.currency}
    if unread := amounts.list_unread_facts(definition, before):
        facts["unread_amounts"] = unread
    if wholes := amounts.list_absent_wholes(definition, inputs.args, before):
        facts["absent_amounts"] = wholes
    return facts


def recount_sums(
    document: Document,
    inputs: RevisionInputs,
    stored: Mapping[str, Any],
    *,
    now: datetime,
) -> dict[str, Any]:
    """Stored facts with their sums and counts computed again, this proposal included.
    Counts of events stay as they were stored. Caller holds a transaction and the locks
    of `list_measures`."""
    transactions.require_transaction("Counting anew")
    definition = tools.load_definition(inputs.tool)
    fresh = _compute_aggregates(document, definition, inputs, now)
    events = {name for name, measure in document.measures.items() if measure.event}
    known = {n: c for n, c in stored.get("count", {}).items() if n in events}
    return {**stored, **fresh, "count": {**fresh["count"], **known}}


def rebase_facts(
    document: Document,
    inputs: RevisionInputs,
    stored: Mapping[str, Any],
    *,
    before: Document,
    then: datetime,
    now: datetime,
) -> dict[str, Any]:
    """Convert the facts of a proposal made under the policy `before` to those that
    `document` defines.

    Facts that both define alike keep their stored values, because rules are evaluated
    on what was known `then`. Amounts and calendars follow the new document. A measure
    that is new, or defined differently under an old name, is counted as of `now`, this
    proposal included. It takes no locks: callers only evaluate the result and allow
    nothing beyond what was decided.
    """
    definition = tools.load_definition(inputs.tool)
    clock = calendars.build_clock_facts(then, document.zone)
    open_then = {f"{n}_open": c.is_open(then) for n, c in document.calendars.items()}
    fresh = _compute_aggregates(document, definition, inputs, now)
    unchanged = {
        name
        for name, measure in document.measures.items()
        if before.measures.get(name) == measure
    }
    of_money = {"unread_amounts", "absent_amounts"}
    return {
        **{name: fact for name, fact in stored.items() if name not in of_money},
        "args": amounts.to_minor_units(definition, inputs.args),
        **_build_money_facts(document, definition, inputs),
        "clock": {**clock, **open_then},
        "before": {**stored["before"], **parse_reader_facts(inputs.before)},
        "keys": {**stored["keys"], **inputs.keys},
        "sum": _merge_counts(fresh["sum"], stored["sum"], unchanged),
        "count": _merge_counts(fresh["count"], stored["count"], unchanged),
        "other_currencies": fresh["other_currencies"],
    }


def _merge_counts(
    fresh: Mapping[str, int], stored: Mapping[str, int], unchanged: set[str]
) -> dict[str, int]:
    return {
        name: stored[name] if name in unchanged and name in stored else value
        for name, value in fresh.items()
    }


def record_observations(
    document: Document,
    inputs: RevisionInputs,
    *,
    at: datetime,
    ran_by: datetime | None = None,
) -> None:
    """Count this revision of the proposal in its sums and in its agent's budget from
    now on. Until it runs, it is in every window.

    `ran_by` is the latest time at which it can run; without it, the longest time that a
    request can wait. Caller holds a transaction and the locks of `list_measures`.
    """
    transactions.require_transaction("Observing")
    definition = tools.load_definition(inputs.tool)
    rows = [
        (name, key, *compute_weight(document, definition, measure, inputs))
        for name, measure, key in _list_own_measures(document, inputs)
    ]
    rows += [
        (budgets.name_measure(code), inputs.agent, min(minor, money.WHOLE), code)
        for code, minor in sum_moved_money(definition, inputs).items()
        if minor
    ]
    names, keys, amounts, currencies = zip(*rows, strict=True) if rows else ((),) * 4
    writes.execute_write(
        _OBSERVE,
        {
            "proposal": inputs.proposal,
            "at": at,
            "ran_by": ran_by or at + LONGEST_WAIT,
            "measures": list(names),
            "keys": list(keys),
            "amounts": list(amounts),
            "currencies": list(currencies),
        },
        row_keys=[(Observation._meta.db_table, inputs.proposal)],
    )


def mark_effect_ran(proposal: str, *, at: datetime) -> None:
    """Record that the proposal's effect ran at this time, or may have. It then counts
    in the windows that begin before `at`. Caller holds a transaction."""
    transactions.require_transaction("Counting an effect")
    writes.execute_write(
        _MARK_RAN,
        {"proposal": proposal, "at": at},
        row_keys=[(Observation._meta.db_table, proposal)],
    )


def mark_effect_denied(proposal: str) -> None:
    """Record that a look-up or a person found that the effect never happened. It no
    longer counts in any sum. Caller holds a transaction."""
    transactions.require_transaction("Denying an effect")
    _select_weights([proposal]).update(counts=False, ran=False)


def release_many(proposals: Sequence[str]) -> None:
    """Take refused, withdrawn or expired proposals out of the sums. Events stay,
    because they did happen. An effect that may have run stays as well: refusing a
    further attempt does not mean that it did not run. Caller holds a transaction."""
    transactions.require_transaction("Releasing observations")
    # guard: ran-weighs
    _select_weights(proposals).filter(counts=True, ran=False).update(counts=False)


def restore_observations(proposal: str, *, at: datetime, ran_by: datetime) -> None:
    """Count a proposal again whose effect did not happen so far: it is retried until
    `ran_by`, or a look-up found that it ran then. `at` is the time at which the
    revision's observations were recorded. Caller holds a transaction."""
    transactions.require_transaction("Restoring observations")
    _select_weights([proposal]).filter(at=at).update(counts=True, ran_by=ran_by)


def _select_weights(proposals: Sequence[str]) -> QuerySet[Observation]:
    """The observations of these proposals, without events."""
    observations = Observation.objects.filter(proposal__in=proposals)
    return observations.exclude(measure__startswith=_EVENTS)


def record_failure(*, agent: str, proposal: str, at: datetime) -> None:
    """Record the event that an execution of this agent failed, for rules that count
    failures. Caller holds a transaction."""
    transactions.require_transaction("Observing a failure")
    Observation.objects.update_or_create(
        proposal=proposal,
        measure=FAILURE,
        key=agent,
        defaults={"at": at, "ran_by": at},
    )


def _list_own_measures(
    document: Document, inputs: RevisionInputs
) -> list[tuple[str, Measure, str]]:
    keys = {**inputs.keys, "agent": inputs.agent, "thread": inputs.thread}
    return [
        (name, measure, keys[measure.key])
        for name, measure in document.measures.items()
        if measure.tool == inputs.tool.name and keys.get(measure.key)
    ]


def compute_weight(
    document: Document,
    definition: ToolDefinition,
    measure: Measure,
    inputs: RevisionInputs,
) -> money.Money:
    """What the proposal adds to the sum of a measure: the total of its amounts, or the
    one amount that the measure sums alone. Zero without a currency for a measure that
    only counts."""
    if not measure.amount:
        return money.Money(0, "")
    moved = _list_moved(definition, inputs)
    if measure.alone:
        moved = [amount for amount in moved if amount.name == measure.amount]
    total = money.combine_amounts([amount.money for amount in moved], document.currency)
    return total or money.Money(0, document.currency)


def _list_moved(
    definition: ToolDefinition, inputs: RevisionInputs
) -> list[amounts.MovedAmount]:
    before = parse_reader_facts(inputs.before)
    return amounts.list_amounts(definition, inputs.args, before)


def _compute_aggregates(
    document: Document,
    definition: ToolDefinition,
    inputs: RevisionInputs,
    now: datetime,
    seen: Windows | None = None,
) -> dict[str, dict[str, Any]]:
    own = _list_own_measures(document, inputs)
    events = [name for name, measure in document.measures.items() if measure.event]
    if seen is None:
        seen = _load_windows(document, inputs, now)
    counts = {name: _count_others(seen, name) for name in events}
    sums: dict[str, int] = {}
    others: dict[str, list[str]] = {}
    for name, measure, _ in own:
        counts[name] = _count_others(seen, name) + 1
        if measure.amount:
            own_weight = compute_weight(document, definition, measure, inputs)
            by_currency = seen.get(name, {})
            others_weight = _sum_comparable(document, own_weight, by_currency)
            sums[name] = min(own_weight.minor + others_weight, money.WHOLE)
            others[name] = sorted(set(by_currency) - {own_weight.currency})
    return {"sum": sums, "count": counts, "other_currencies": others}


def _sum_comparable(
    document: Document, own: money.Money, by_currency: Mapping[str, tuple[int, int]]
) -> int:
    """The sum of what other proposals moved in the same currency. Of a MIXED amount
    only the part in the document's currency is known."""
    comparable = {own.currency}
    if own.currency in {document.currency, money.MIXED}:
        comparable = {document.currency, money.MIXED}
    return sum(total for code, (_, total) in by_currency.items() if code in comparable)


Windows = Mapping[str, Mapping[str, tuple[int, int]]]


def build_window_values(
    document: Document, inputs: RevisionInputs, end: datetime | None = None
) -> dict[str, Any]:
    """The parameters of `WINDOWS_COLUMN` for the measures of a proposal."""
    asked = [
        (name, name, key, measure.window)
        for name, measure, key in _list_own_measures(document, inputs)
    ]
    asked += [
        (name, FAILURE, inputs.agent, measure.window)
        for name, measure in document.measures.items()
        if measure.event
    ]
    return _format_windows(asked, inputs.proposal, end)


def _format_windows(
    asked: Iterable[tuple[str, str, str, timedelta]],
    proposal: str,
    end: datetime | None,
) -> dict[str, Any]:
    columns: list[list[Any]] = [list(column) for column in zip(*asked, strict=True)]
    names, measures, keys, spans = columns or ([], [], [], [])
    return {
        "window_names": names,
        "window_measures": measures,
        "window_keys": keys,
        "window_spans": spans,
        "window_end": end,
        "window_proposal": proposal,
    }


# The parameters of a proposal that is in no window.
NO_WINDOW_VALUES: Mapping[str, Any] = _format_windows([], "", None)


def parse_windows(rows: Iterable[Sequence[Any]] | None) -> Windows:
    """What other proposals add, by measure and currency, from `WINDOWS_COLUMN`."""
    windows: dict[str, dict[str, tuple[int, int]]] = {}
    for name, currency, count, total in rows or ():
        windows.setdefault(name, {})[currency] = (count, total)
    return windows


def _load_windows(document: Document, inputs: RevisionInputs, now: datetime) -> Windows:
    values = build_window_values(document, inputs, now)
    if not values["window_names"]:
        return {}
    return parse_windows(_WINDOWS.fetch_one(**values)[0])


def _count_others(seen: Windows, name: str) -> int:
    return sum(count for count, _ in seen.get(name, {}).values())


def parse_reader_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The reader's facts in the form for rules: a text with a `<name>_currency` beside
    it is money, in minor units.

    Money that cannot be parsed is left out, so that a rule that reads it blocks.
    """
    parsed: dict[str, Any] = {}
    for name, value in facts.items():
        currency = facts.get(f"{name}_currency")
        if currency is None:
            parsed[name] = value
            continue
        try:
            parsed[name] = money.parse(value, currency, negative=True).minor
        except money.InvalidMoney:
            continue
    return parsed
