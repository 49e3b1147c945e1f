"""What a policy asks of a tool's calls by their amount, for people who read it: "over
100.00 up to 500.00 USD: 1 reviewer". Pure.

A band takes in the floor, the risk, and the rules that hold always or read nothing but
the amount. What any other rule asks depends on more than a table can show, so it is
named beside the bands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import NamedTuple

from . import evaluation
from .calendars import describe_duration
from .choices import APPROVAL_LABELS, Role, Tier
from .documents import Document, EffectClass, Rule, StepSpec, ToolDefinition
from .evaluation import BaseAuthority, Evaluation, Finding, RequiredStep
from .money import Money, format_money

_AMOUNT_RULE = re.compile(r"(args|money)\.(\w+)\s*(>=|>)\s*(\d{1,15})")
_ASKS = (Tier.APPROVE, Tier.ESCALATE)


class Span(NamedTuple):
    """Amounts of a currency in minor units: over `above`, up to `most`. None has no
    end; both are None for a tool without one amount that rules compare."""

    above: int | None
    most: int | None
    currency: str

    @property
    def text(self) -> str:
        """It in words: `over 100.00 up to 500.00 USD`; empty for every amount."""
        if self.above is None and self.most is None:
            return ""
        if self.most is None:
            return f"over {format_money(Money(self.above or 0, self.currency))}"
        most = f"up to {format_money(Money(self.most, self.currency))}"
        if self.above is None:
            return most
        above = format_money(Money(self.above, self.currency))
        return f"over {above.removesuffix(f' {self.currency}')} {most}"


class Band(NamedTuple):
    """What is asked of calls with these amounts, and the rules that ask for it."""

    span: Span
    asked: Evaluation
    rules: tuple[Rule, ...]


def list_bands(
    document: Document,
    tool: ToolDefinition,
    effect_class: EffectClass | None = None,
    limits: Iterable[int] = (),
) -> list[Band]:
    """The bands of one class of a tool, the smallest amounts first. They are divided at
    `limits` too, and where they are not, two of them differ in what they ask."""
    base = evaluation.build_class_base(tool, effect_class)
    wanted = set(limits)
    figures = sorted({*list_limits(document, tool), *wanted})
    ends: list[int | None] = [None, *figures, None]
    bands: list[Band] = []
    for above, most in pairwise(ends):
        span = Span(above, most, document.currency)
        band = _build_band(document, tool, base, span)
        if bands and above not in wanted and _is_same(bands[-1], band):
            former = bands.pop()
            band = former._replace(span=former.span._replace(most=most))
        bands.append(band)
    return bands


def list_limits(document: Document, tool: ToolDefinition) -> list[int]:
    """The figures above which a rule, or `critical_above`, asks for something else of
    this tool. They are in minor units."""
    name = find_amount(tool)
    if not name:
        return []
    limits = {
        limit for rule in document.rules_for(tool.name) for limit in _read(rule, name)
    }
    figure = document.critical_above
    if figure is not None and figure.currency == document.currency:
        limits.add(figure.money.minor)
    return sorted(limit for limit in limits if limit >= 0)


def find_amount(tool: ToolDefinition) -> str:
    """The argument that has the only amount of the tool, else an empty text."""
    pairs = [pair.amount for pair in tool.money]
    return pairs[0] if len(pairs) == 1 and not tool.amounts else ""


def list_further_rules(document: Document, tool: ToolDefinition) -> list[Rule]:
    """The rules for a tool that no band takes in."""
    name = find_amount(tool)
    return [
        rule
        for rule in document.rules_for(tool.name)
        if not _is_always(rule) and not (name and _read(rule, name))
    ]


def _build_band(
    document: Document, tool: ToolDefinition, base: BaseAuthority, span: Span
) -> Band:
    name = find_amount(tool)
    least = -1 if span.above is None else span.above
    rules = [
        rule
        for rule in document.rules_for(tool.name)
        if _is_always(rule)
        or (name and any(least >= limit for limit in _read(rule, name)))
    ]
    findings = [Finding(rule.id, rule.text, rule.then) for rule in rules]
    amount = None
    if name:
        minor = span.most if span.most is not None else (span.above or 0) + 1
        amount = Money(minor, document.currency)
    asked = evaluation.evaluate_findings(document, tool, base, findings, amount)
    return Band(span, asked, tuple(rules))


def _is_same(band: Band, other: Band) -> bool:
    return describe_terms(band.asked) == describe_terms(other.asked)


def _is_always(rule: Rule) -> bool:
    return rule.when.strip() == "true"


def _read(rule: Rule, name: str) -> Sequence[int]:
    """The figure that a rule compares the amount with, as the largest one for which it
    does not hold; empty for a rule that reads anything else."""
    match = _AMOUNT_RULE.fullmatch(rule.when.strip())
    if match is None or (match[1], match[2]) not in {
        ("args", name),
        ("money", "amount_minor"),
    }:
        return ()
    return (int(match[4]) - (match[3] == ">="),)


def describe_people(asked: Evaluation) -> str:
    """Who decides: `2 supervisors and 1 reviewer`, or that nobody is asked."""
    if asked.tier not in _ASKS:
        return APPROVAL_LABELS[asked.tier].lower()
    return describe_steps(asked.steps)


def describe_steps(steps: Iterable[RequiredStep | StepSpec]) -> str:
    """The people that steps ask for."""
    return " and ".join(
        f"{step.required} {step.role}{'' if step.required == 1 else 's'}"
        for step in steps
    )


def describe_deadline(asked: Evaluation) -> str:
    """How long people have; empty where nobody is asked."""
    if asked.tier not in _ASKS:
        return ""
    return describe_duration(timedelta(seconds=asked.timeout))


def list_extras(asked: Evaluation) -> list[str]:
    """What else is asked of those who decide."""
    return list(_list_extras(asked)) if asked.tier in _ASKS else []


def _list_extras(asked: Evaluation) -> Iterator[str]:
    if asked.step_up:
        yield "password or factor again"
    if asked.requires_reason:
        yield "reason"
    if asked.requires_rationale:
        yield "rationale of the agent"


def describe_terms(asked: Evaluation) -> tuple[str, ...]:
    """Everything that differs between two bands, for people."""
    return (
        describe_people(asked),
        str(asked.tier),
        str(asked.risk),
        asked.queue,
        describe_deadline(asked),
        *list_extras(asked),
    )


def count_people(asked: Evaluation, role: Role | None = None) -> int:
    """How many people must agree, or how many of this role."""
    return sum(s.required for s in asked.steps if role is None or s.role is role)
