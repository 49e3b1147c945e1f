"""Simulation: what a policy document would say about given calls, without a database.

Sums and counts of given calls cover only these calls, in their order.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from journal import canonical, clock
from journal.errors import DomainError
from policies import amounts, evaluation, facts, undeclared_tools
from policies.choices import Tier
from policies.documents import Document, ToolDefinition
from policies.facts import RevisionInputs
from policies.models import Tool
from policies.money import WHOLE, Money
from policies.schemas import list_errors
from reviews.presenters import present_effect

CALL_FIELDS = {
    "tool",
    "args",
    "agent",
    "thread",
    "uncertain",
    "unattended",
    "reading",
    "at",
}


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """The result for one call; `problem` says why there is none."""

    line: int
    tool: str = ""
    tier: str = ""
    risk: str = ""
    effect_class: str = ""
    queue: str = ""
    rules: tuple[str, ...] = ()
    title: str = ""
    problem: str = ""


@dataclass(slots=True)
class RunningTotals:
    """The sums and counts of the calls so far, by measure and key."""

    sums: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class MeasureWeight:
    """What one call adds to one measure."""

    measure: str
    key: str
    is_sum: bool
    amount: Money

    @property
    def of(self) -> tuple[str, str, str]:
        return self.measure, self.key, self.amount.currency


class InvalidCall(Exception):
    """The line is not a valid call; the message says why."""


def simulate_calls(
    document: Document, lines: Iterable[str], *, now: datetime
) -> Iterator[SimulationResult]:
    """Yield one result for each line that is not empty; an invalid line has a problem.
    A line is a JSON object with `tool` and `args`, and optionally `agent`, `thread`,
    `uncertain`, `unattended`, `at` (ISO 8601 with a zone), and `reading` with the
    `before`, `keys` and `facts` that the tool's reader would return."""
    memory = RunningTotals()
    for number, text in enumerate(lines, 1):
        if text.strip():
            try:
                yield _simulate_call(document, _parse_call(text), number, memory, now)
            except InvalidCall as error:
                yield SimulationResult(
                    number, tool=_parse_tool_name(text), problem=str(error)
                )


def _parse_call(text: str) -> dict[str, Any]:
    try:
        call = canonical.parse(text.encode())
    except (DomainError, ValueError) as error:
        raise InvalidCall("this is not strict JSON") from error
    if not isinstance(call, dict) or not isinstance(call.get("args"), dict):
        raise InvalidCall('write {"tool": ..., "args": {...}}')
    if unknown := sorted(set(call) - CALL_FIELDS):
        raise InvalidCall(f"nothing reads {', '.join(unknown)}")
    reading = call.get("reading", {})
    if not isinstance(reading, dict) or not all(
        isinstance(reading.get(name, {}), dict) for name in ("keys", "facts")
    ):
        raise InvalidCall("reading is an object with before, keys and facts")
    return call


def _parse_tool_name(text: str) -> str:
    try:
        return str(json.loads(text)["tool"])
    except (ValueError, TypeError, KeyError):
        return ""


def _simulate_call(
    document: Document,
    call: Mapping[str, Any],
    number: int,
    memory: RunningTotals,
    now: datetime,
) -> SimulationResult:
    name = str(call.get("tool", ""))
    definition = document.tools.get(name)
    held, args = document.held_unknown, call["args"]
    if definition is None and held and undeclared_tools.can_hold(name, args):
        definition = undeclared_tools.build_definition(name, args, held)
    if definition is None:
        return SimulationResult(number, name, Tier.BLOCK, rules=("tool.unknown",))
    gathered, own = _collect_checked_facts(document, definition, call, memory, now)
    shown = present_effect(
        definition,
        call["args"],
        before=call.get("reading", {}).get("before"),
        facts=gathered,
        domains=document.own_domains,
    )
    gathered["uninspectable"] = sorted({part.argument for part in shown.uninspectable})
    evaluated = evaluation.evaluate(document, definition, gathered)
    if evaluated.tier is not Tier.BLOCK:
        _add_to_totals(own, memory)
    return SimulationResult(
        number,
        name,
        evaluated.tier,
        evaluated.risk,
        evaluated.effect_class,
        evaluated.queue,
        tuple(rule.id for rule in evaluated.rules),
        "".join(part.text for part in shown.sentence),
    )


def _collect_checked_facts(
    document: Document,
    definition: ToolDefinition,
    call: Mapping[str, Any],
    memory: RunningTotals,
    now: datetime,
) -> tuple[dict[str, Any], list[MeasureWeight]]:
    """Raises InvalidCall for arguments that do not fit the tool's schema."""
    faults = list_errors(definition.validator, call["args"])
    if faults := faults or list(amounts.list_errors(definition, call["args"])):
        described = (f"{fault['path']}: {fault['message']}" for fault in faults)
        raise InvalidCall("; ".join(described))
    try:
        return _build_facts(document, definition, call, memory, now)
    except (ValueError, TypeError) as error:
        raise InvalidCall(str(error)) from error


def _build_facts(
    document: Document,
    definition: ToolDefinition,
    call: Mapping[str, Any],
    memory: RunningTotals,
    now: datetime,
) -> tuple[dict[str, Any], list[MeasureWeight]]:
    reading = call.get("reading", {})
    at = datetime.fromisoformat(call["at"]) if "at" in call else now
    if at.tzinfo is None:
        raise ValueError("at has no zone: write 2026-11-24T10:00:00+00:00")
    if not clock.is_usable(at):
        raise ValueError(f"at: the year {clock.YEARS_RULE}")
    inputs = RevisionInputs(
        tool=Tool(name=definition.name),
        args=call["args"],
        agent=str(call.get("agent", "agent")),
        unattended=call.get("unattended") is True,
        thread=str(call.get("thread", "try")),
        uncertain=float(call.get("uncertain", 0)),
        keys=reading.get("keys", {}),
        before=reading.get("facts", {}),
        proposal="",
    )
    plain = facts.build_plain_facts(document, definition, inputs, now=at)
    own = list(_list_weights(document, definition, plain, inputs))
    return {**plain, **_compute_sums(document, own, memory)}, own


def _list_weights(
    document: Document,
    definition: ToolDefinition,
    plain: Mapping[str, Any],
    inputs: RevisionInputs,
) -> Iterator[MeasureWeight]:
    keys = {
        **plain["keys"],
        "agent": plain["agent"]["name"],
        "thread": plain["thread"],
    }
    for name, measure in document.measures.items():
        if measure.tool == definition.name and keys.get(measure.key):
            weight = facts.compute_weight(document, definition, measure, inputs)
            yield MeasureWeight(
                name, str(keys[measure.key]), bool(measure.amount), weight
            )


def _compute_sums(
    document: Document, own: Iterable[MeasureWeight], memory: RunningTotals
) -> dict[str, Any]:
    counts = {name: 0 for name, measure in document.measures.items() if measure.event}
    sums = {}
    for weight in own:
        counts[weight.measure] = memory.counts[weight.measure, weight.key] + 1
        if weight.is_sum:
            together = memory.sums[weight.of] + weight.amount.minor
            sums[weight.measure] = min(together, WHOLE)
    return {"sum": sums, "count": counts, "other_currencies": {}}


def _add_to_totals(own: Iterable[MeasureWeight], memory: RunningTotals) -> None:
    for weight in own:
        memory.counts[weight.measure, weight.key] += 1
        if weight.is_sum:
            memory.sums[weight.of] += weight.amount.minor


def format_lines(trials: Iterable[SimulationResult]) -> Iterator[str]:
    """Yield each result as one line of JSON."""
    for trial in trials:
        yield json.dumps(asdict(trial), ensure_ascii=False)
