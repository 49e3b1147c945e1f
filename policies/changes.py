"""What a new policy asks for in place of another: less, more, or something that cannot
be compared. Pure.

A difference of two texts does not say which of them is laxer. This says it first: in
which direction each part moves, and which tools it concerns. What has no direction is
named, so that somebody checks it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from .calendars import describe_duration
from .choices import Risk, Role, Tier
from .documents import (
    Desk,
    Document,
    EffectClass,
    Profile,
    Rule,
    StepSpec,
    Then,
    ToolDefinition,
)
from .money import Money, format_money

_COMPARISON = re.compile(r"(<=|>=|<|>)\s*(\d+(?:\.\d+)?)(?![\w.])")
EVERY = "every tool"


class Direction(StrEnum):
    """Which way a part of a policy moves, the most important first."""

    LESS = "less"
    MAYBE_LESS = "maybe_less"
    CHANGED = "changed"
    MORE = "more"


class PolicyChange(NamedTuple):
    """One change, as a sentence that begins with what it concerns, and the two parts of
    that sentence, for a table."""

    direction: Direction
    text: str
    what: str = ""
    how: str = ""


def list_changes(before: Document, after: Document) -> list[PolicyChange]:
    """The changes from one policy to another, laxer ones first."""
    changes = [
        *_list_rule_changes(before, after),
        *_list_tool_changes(before, after),
        *_list_document_changes(before, after),
    ]
    order = list(Direction)
    return sorted(dict.fromkeys(changes), key=lambda c: order.index(c.direction))


def list_laxer(changes: Iterable[PolicyChange]) -> list[str]:
    """The sentences of what asks for less, or may."""
    lax = {Direction.LESS, Direction.MAYBE_LESS}
    return [change.text for change in changes if change.direction in lax]


_VERBS = {
    Direction.LESS: "asks for less",
    Direction.MAYBE_LESS: "may ask for less",
    Direction.CHANGED: "changes",
    Direction.MORE: "asks for more",
}


def describe_change(direction: Direction, what: str, how: str) -> PolicyChange:
    """A change of `what`, of which `how` says more."""
    sentence = f"{what} {_VERBS[direction]}"
    text = f"{sentence}: {how}." if how else f"{sentence}."
    return PolicyChange(direction, text, what, how)


_say = describe_change


def _less_if(less: object) -> Direction:
    return Direction.LESS if less else Direction.MORE


def _list_rule_changes(before: Document, after: Document) -> Iterator[PolicyChange]:
    old = {rule.id: rule for rule in before.rules}
    new = {rule.id: rule for rule in after.rules}
    for name, rule in old.items():
        what = f"Rule {name} ({_format_tools(rule.tools)})"
        if name not in new:
            yield _say(Direction.LESS, what, "it is removed")
        elif new[name] != rule:
            yield from _compare_rules(what, rule, new[name], before, after)
    for name, rule in new.items():
        if name not in old:
            what = f"Rule {name} ({_format_tools(rule.tools)})"
            yield _say(Direction.MORE, what, "it is new")


def _compare_rules(
    what: str, old: Rule, new: Rule, before: Document, after: Document
) -> Iterator[PolicyChange]:
    if gone := [name for name in old.tools if not new.concerns(name)]:
        how = f"it no longer applies to {_format_tools(gone)}"
        yield _say(Direction.LESS, what, how)
    if [name for name in new.tools if not old.concerns(name)]:
        how = f"it now applies to {_format_tools(new.tools)}"
        yield _say(Direction.MORE, what, how)
    if old.when.split() != new.when.split():
        direction = compare_conditions(old.when, new.when)
        was, now = format_condition(before, old), format_condition(after, new)
        yield _say(direction, what, f"{was} → {now}")
    for direction in _compare_demands(old.then, new.then):
        how = f"{old.then.describe()} → {new.then.describe()}"
        yield _say(direction, what, how)
    if old.text != new.text:
        yield _say(Direction.CHANGED, what, "its explanation has other words")


# A figure, as it is compared with what a rule reads on its left or on its right.
_READ = r"(?:args|before|sum|money)\.\w+"
_SIGN, _FIGURE = r"\s*(?:<=|>=|==|!=|<|>)\s*", r"(?<![\w.])\d+(?![\w.])"
_COMPARED_FIGURE = re.compile(
    rf"(?P<read>{_READ})(?P<sign>{_SIGN})(?P<figure>{_FIGURE})"
    rf"|(?P<figure_first>{_FIGURE})(?P<sign_first>{_SIGN})(?P<read_last>{_READ})(?!\w)"
)


def format_condition(document: Document, rule: Rule) -> str:
    """A rule's condition on one line, with its amounts as people write money:
    `args.amount > 500.00 USD`. The document has them in minor units of its currency."""
    tools = [tool for name, tool in document.tools.items() if rule.concerns(name)]

    def is_money(read: str) -> bool:
        place, _, name = read.partition(".")
        if place == "sum":
            measure = document.measures.get(name)
            return measure is not None and bool(measure.amount)
        if place == "args":
            return any(name in tool.plain_amounts for tool in tools)
        if place == "before":
            return any(f"{name}_currency" in tool.facts for tool in tools)
        return name == "amount_minor"

    def rewrite(match: re.Match[str]) -> str:
        given = match.groupdict()
        if not is_money(given["read"] or given["read_last"]):
            return match[0]
        figure = given["figure"] or given["figure_first"]
        amount = format_money(Money(int(figure), document.currency))
        if given["read"]:
            return f"{given['read']}{given['sign']}{amount}"
        return f"{amount}{given['sign_first']}{given['read_last']}"

    return _COMPARED_FIGURE.sub(rewrite, _flatten(rule.when))


def compare_conditions(old: str, new: str) -> Direction:
    """How often a condition holds, compared with another one. Only figures that are
    compared with something have a direction."""
    was, now = _flatten(old), _flatten(new)
    shape = _COMPARISON.sub(r"\1 #", was)
    turned = "!" in shape.replace("!=", "") or "?" in shape
    if turned or shape != _COMPARISON.sub(r"\1 #", now):
        return Direction.MAYBE_LESS
    directions = set()
    pairs = zip(_COMPARISON.findall(was), _COMPARISON.findall(now), strict=True)
    for (sign, before), (_, after) in pairs:
        if float(before) != float(after):
            rarer = (float(after) > float(before)) is sign.startswith(">")
            directions.add(_less_if(rarer))
    return directions.pop() if len(directions) == 1 else Direction.MAYBE_LESS


def _compare_demands(old: Then, new: Then) -> Iterator[Direction]:
    """The directions in which the parts of a rule's demand move."""
    steps = [(then.step.required if then.step else 0) for then in (old, new)]
    ranks = [
        (old.demands.rank, new.demands.rank),
        (_rank_risk(old.risk), _rank_risk(new.risk)),
        (steps[0], steps[1]),
        (old.reason, new.reason),
        (old.step_up, new.step_up),
    ]
    directions = {_less_if(now < was) for was, now in ranks if was != now}
    if old.timeout != new.timeout:
        shorter = new.timeout and (not old.timeout or new.timeout < old.timeout)
        directions.add(_less_if(not shorter))
    roles = [then.step.role if then.step else "" for then in (old, new)]
    if all(roles) and roles[0] != roles[1]:
        directions.add(_less_if(roles[0] == Role.SUPERVISOR))
    if (old.queue, old.flag) != (new.queue, new.flag):
        directions.add(Direction.CHANGED)
    yield from sorted(directions, key=list(Direction).index)


def _rank_risk(risk: Risk | None) -> int:
    return risk.rank if risk else -1


def _list_tool_changes(before: Document, after: Document) -> Iterator[PolicyChange]:
    for name, old in before.tools.items():
        if name not in after.tools:
            yield _describe_removed_tool(name, after)
        elif after.tools[name] != old:
            yield from _compare_tools(before, after, old, after.tools[name])
    for name in after.tools:
        if name not in before.tools:
            yield _describe_new_tool(after.tools[name], before)


def _describe_removed_tool(name: str, after: Document) -> PolicyChange:
    """Held as an unknown tool, its calls are without the rules that name it."""
    if held := after.held_unknown:
        how = f"it is removed, so its calls are held in {held.hold}, without its rules"
        return _say(Direction.LESS, f"Tool {name}", how)
    return _say(Direction.MORE, f"Tool {name}", "it is removed, so it is blocked")


def _describe_new_tool(tool: ToolDefinition, before: Document) -> PolicyChange:
    what, held = f"Tool {tool.name}", before.held_unknown
    if held is None:
        return _say(Direction.LESS, what, "it is new, and was blocked before")
    parts: Sequence[ToolDefinition | EffectClass] = tool.classes or [tool]
    tiers = [max(part.base.rank, part.profile.least.rank) for part in parts]
    lower = min(part.risk.rank for part in parts) < Risk.HIGH.rank
    less = lower or min(tiers) < held.tier.rank
    how = f"it is new, and its calls were held in {held.hold} before"
    return _say(Direction.LESS if less else Direction.CHANGED, what, how)


def _compare_tools(
    before: Document, after: Document, old: ToolDefinition, new: ToolDefinition
) -> Iterator[PolicyChange]:
    what = f"Tool {old.name}"
    yield from _compare_floors(what, old, new)
    old_classes = {c.name: c for c in old.classes or []}
    new_classes = {c.name: c for c in new.classes or []}
    for name in {**old_classes, **new_classes}:
        pair = old_classes.get(name), new_classes.get(name)
        yield from _compare_classes(f"{what}, class {name},", *pair)
    for tier in (Tier.APPROVE, Tier.ESCALATE):
        steps = before.steps_for(old, tier), after.steps_for(new, tier)
        if old.steps.get(tier) != new.steps.get(tier):
            yield from _compare_steps(f"{what}, {tier},", *steps)
    yield from _compare_profiles(what, old.profile, new.profile)
    known = {"name", "floor", "risk", "classes", "steps", "profile", *_TOOL_PARTS}
    for name, compare in _TOOL_PARTS.items():
        pair = getattr(old, name), getattr(new, name)
        if pair[0] != pair[1]:
            how = f"{name} {_format_pair(*pair)}".rstrip()
            yield _say(compare(*pair), what, how)
    for name in type(old).model_fields:
        if name not in known:
            yield from _compare_values(what, name, _dump(old, name), _dump(new, name))


def _compare_floors(
    what: str, old: ToolDefinition | EffectClass, new: ToolDefinition | EffectClass
) -> Iterator[PolicyChange]:
    pairs = (("floor", old.base, new.base), ("risk", old.risk, new.risk))
    for name, was, now in pairs:
        if was != now:
            yield _say(_less_if(now.rank < was.rank), what, f"{name} {was} → {now}")


def _compare_classes(
    what: str, old: EffectClass | None, new: EffectClass | None
) -> Iterator[PolicyChange]:
    if old is None or new is None:
        how = "it is new" if old is None else "it is removed"
        yield _say(Direction.MAYBE_LESS, what, how)
        return
    yield from _compare_floors(what, old, new)
    if old.when != new.when:
        yield _say(Direction.MAYBE_LESS, what, "other calls belong to it")
    if old.requires_reason != new.requires_reason:
        pair = old.requires_reason, new.requires_reason
        how = f"requires_reason {_format_pair(*pair)}"
        yield _say(_compare_flags(*pair), what, how)
    yield from _compare_profiles(what, old.profile, new.profile)


# What is said of a profile without the mark, and with it. Each mark asks for more.
_MARKS = {
    "monetary": "moves money",
    "external": "reaches the outside",
    "regulated": "regulated",
    "novel": "novel",
    "self_modifying": "changes the agent itself",
}


def _compare_profiles(what: str, old: Profile, new: Profile) -> Iterator[PolicyChange]:
    if old.reversible != new.reversible:
        how = "no longer irreversible" if new.reversible else "irreversible now"
        yield _say(_less_if(new.reversible), what, how)
    if old.blast_radius != new.blast_radius:
        how = f"blast radius {old.blast_radius} → {new.blast_radius} of 5"
        yield _say(_less_if(new.blast_radius < old.blast_radius), what, how)
    for name, words in _MARKS.items():
        was, now = getattr(old, name), getattr(new, name)
        if was != now:
            how = f"no longer marked: {words}" if was else f"marked now: {words}"
            yield _say(_less_if(was), what, how)
    pair = old.reversible_because, new.reversible_because
    yield from _compare_values(what, "reversible_because", *pair)


def _dump(tool: ToolDefinition, name: str) -> Any:
    return tool.model_dump(mode="json", include={name})[name]


def _compare_values(what: str, path: str, old: Any, new: Any) -> Iterator[PolicyChange]:
    """Each plain value that differs, with its path: where a call goes, for example."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in {**old, **new}:
            pair = old.get(name), new.get(name)
            yield from _compare_values(what, f"{path}.{name}", *pair)
    elif old != new:
        how = f"{path} {_format_pair(old, new)}".rstrip()
        less = path == "reversal.kind" and old == "irreversible"
        direction = Direction.MAYBE_LESS if less else Direction.CHANGED
        yield _say(direction, what, how if how != path else f"{path} has another value")


def _compare_steps(
    what: str, old: Sequence[StepSpec], new: Sequence[StepSpec]
) -> Iterator[PolicyChange]:
    if old == new:
        return
    fewer = _count_people(new) < _count_people(old)
    fewer = fewer or _count_people(new, "supervisor") < _count_people(old, "supervisor")
    how = f"{_format_steps(old)} → {_format_steps(new)}"
    yield _say(_less_if(fewer), what, how)


def _count_people(steps: Iterable[StepSpec], role: str = "") -> int:
    return sum(step.required for step in steps if not role or step.role == role)


def _compare_flags(old: Any, new: Any) -> Direction:
    """For parts that ask for something where they are there."""
    return _less_if(old or not new)


def _compare_sets(old: Any, new: Any) -> Direction:
    """For lists of which each element asks for something."""
    return _less_if([element for element in old if element not in new])


def _compare_permits(old: Any, new: Any) -> Direction:
    """For parts that allow something where they are there."""
    if old is None or new is None:
        return _less_if(old is None)
    return Direction.MAYBE_LESS


def _compare_caps(old: Any, new: Any) -> Direction:
    """For figures of which a larger one allows more, and none or 0 allows anything."""
    return _less_if(not new or (old and new > old))


def _compare_spans(old: Any, new: Any) -> Direction:
    """For times in which something stays possible."""
    return Direction.MAYBE_LESS if old is None else _less_if(not new or new > old)


def _compare_edits(old: Any, new: Any) -> Direction:
    return _less_if(new == "alone")


_TOOL_PARTS = {
    "edit": _compare_edits,
    "requires_reason": _compare_flags,
    "requires_rationale": _compare_flags,
    "timeout": _compare_spans,
    "timeout_max": _compare_spans,
    "window": _compare_spans,
    "batchable": _compare_permits,
    "standing_grant": _compare_permits,
    "iteration_cap": _compare_caps,
    "verifiers": _compare_sets,
    "keys": _compare_sets,
    "preconditions": _compare_sets,
    "money": _compare_sets,
    "amounts": _compare_sets,
}


def _list_document_changes(before: Document, after: Document) -> Iterator[PolicyChange]:
    for tier in (Tier.APPROVE, Tier.ESCALATE):
        steps = before.steps.get(tier, []), after.steps.get(tier, [])
        yield from _compare_steps(f"Tier {tier} ({EVERY})", *steps)
    undo = before.recall, after.recall
    yield from _compare_levels("Undo window", *undo, _format_seconds)
    floors = before.desk.time_floor, after.desk.time_floor
    yield from _compare_levels("Minimum reading time", *floors, _format_seconds)
    checks = before.desk.micro_check, after.desk.micro_check
    old, new = ({key: 1 / n if n else 0 for key, n in c.items()} for c in checks)
    yield from _compare_levels("Rate of attention checks", old, new, _format_rate)
    yield from _compare_methods(before.desk, after.desk)
    for name, compare in (
        ("desk.written_answer", _compare_sets),
        ("desk.most_decisions", _compare_caps),
        ("rejections_in_a_row", _compare_caps),
    ):
        pair = _get(before, after, name)
        if pair[0] != pair[1]:
            what = f"{name.removeprefix('desk.')} ({EVERY})"
            yield _say(compare(*pair), what, _format_pair(*pair))
    yield from _compare_figures(before, after)
    yield from _compare_unknown_tools(before, after)
    yield from _list_other_changes(before, after)


def _list_other_changes(before: Document, after: Document) -> Iterator[PolicyChange]:
    for queue in {**before.verifiers, **after.verifiers}:
        pair = before.verifiers.get(queue, []), after.verifiers.get(queue, [])
        if pair[0] != pair[1]:
            direction = _compare_sets(*pair)
            what = "left out" if direction is Direction.LESS else "added"
            yield _say(direction, f"Queue {queue}", f"a verifier is {what}")
    for name in sorted(set(after.free_form) - set(before.free_form)):
        how = "a call that no page can show in full escalates; it was blocked before"
        yield _say(Direction.LESS, f"Tool {name}", how)
    for name in {**before.measures, **after.measures}:
        measures = before.measures.get(name), after.measures.get(name)
        if measures[0] != measures[1]:
            yield _say(Direction.CHANGED, f"Counter {name}", "")
    for name in ("currency", "zone", "calendars", "queues", "assurance", "alerts"):
        pair = _get(before, after, name)
        if pair[0] != pair[1]:
            how = _format_pair(*pair)
            yield _say(Direction.CHANGED, f"The part {name}", how)


def _compare_unknown_tools(before: Document, after: Document) -> Iterator[PolicyChange]:
    """Refusing is the strictest, then the higher of the two tiers."""
    if before.unknown_tools == after.unknown_tools:
        return
    old, new = (
        held.tier.rank if (held := document.held_unknown) else Tier.BLOCK.rank
        for document in (before, after)
    )
    direction = Direction.CHANGED
    if old != new:
        direction = Direction.LESS if new < old else Direction.MORE
    how = " → ".join(
        f"held in {held.hold} for {held.tier}"
        if (held := document.held_unknown)
        else "refused"
        for document in (before, after)
    )
    yield _say(direction, "What becomes of calls of unknown tools", how)


def _get(before: Document, after: Document, path: str) -> tuple[Any, Any]:
    parts: list[Any] = [before, after]
    for name in path.split("."):
        parts = [getattr(part, name) for part in parts]
    return parts[0], parts[1]


def _compare_figures(before: Document, after: Document) -> Iterator[PolicyChange]:
    """`critical_above`: a larger amount than it is critical."""
    old, new = before.critical_above, after.critical_above
    if old == new:
        return
    pair = [format_money(figure.money) if figure else "none" for figure in (old, new)]
    if old and new and old.currency != new.currency:
        direction = Direction.MAYBE_LESS
    else:
        minor = [figure.money.minor if figure else None for figure in (old, new)]
        direction = _compare_caps(*minor)
    what = f"critical_above ({EVERY})"
    yield _say(direction, what, " → ".join(pair))


def _compare_levels(
    what: str,
    old: Mapping[Risk, float],
    new: Mapping[Risk, float],
    write: Callable[[float], str],
) -> Iterator[PolicyChange]:
    """Figures by risk level, of which a smaller one asks for less."""
    for risk in Risk:
        was, now = old.get(risk, 0), new.get(risk, 0)
        if was != now:
            figures = f"{write(was)} → {write(now)}"
            yield _say(_less_if(now < was), f"{what} at {risk} risk", figures)


def _compare_methods(old: Desk, new: Desk) -> Iterator[PolicyChange]:
    """What a step-up may be, of which each method more allows more."""
    for risk in Risk:
        was, now = (desk.list_step_up_methods(risk) for desk in (old, new))
        if was != now:
            direction = _less_if([method for method in now if method not in was])
            how = " → ".join(", ".join(methods) for methods in (was, now))
            yield _say(direction, f"Step-up at {risk} risk", how)


def _format_seconds(seconds: float) -> str:
    return describe_duration(timedelta(seconds=seconds)) if seconds else "none"


def _format_rate(rate: float) -> str:
    return f"1 in {round(1 / rate)}" if rate else "never"


def _format_tools(names: Sequence[str]) -> str:
    return ", ".join(EVERY if name == "*" else name for name in names)


def _format_steps(steps: Iterable[StepSpec]) -> str:
    return (
        " and ".join(
            f"{step.required} {step.role}{'' if step.required == 1 else 's'}"
            for step in steps
        )
        or "nobody"
    )


def _format_pair(old: Any, new: Any) -> str:
    if hasattr(old, "total_seconds") and hasattr(new, "total_seconds"):
        return f"{describe_duration(old)} → {describe_duration(new)}"
    words = _format_value(old), _format_value(new)
    return " → ".join(words) if all(words) else ""


def _format_value(value: Any) -> str:
    """A plain value, or a list of such, as the document has it; empty for others."""
    if value is None or value in ([], "", {}):
        return "none"
    if isinstance(value, list):
        words = [_format_value(element) for element in value]
        return ", ".join(words) if all(words) else ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int) else ""


def _flatten(text: str) -> str:
    return " ".join(text.split())
