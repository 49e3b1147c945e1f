"""Page models of the policy pages: all versions, and one version with its rules, tools
and measures in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from journal.errors import NotFound
from policies import active, bands, changes, comparison
from policies.calendars import describe_duration
from policies.choices import APPROVAL_LABELS, Risk, Role, Tier
from policies.comparison import ChangeGroup
from policies.documents import (
    EVERY_TOOL,
    Document,
    EffectClass,
    Measure,
    Rule,
    ToolDefinition,
)
from policies.documents.source import write_source
from policies.models import Person, PolicyVersion

PERFORMED = {
    "agent": "the agent performs it",
    "callable": "Counterseal runs it",
    "webhook": "Counterseal calls its service",
}
_PEOPLE = ("author", "activated_by", "refused_by")
READERS = (Role.REVIEWER, Role.SUPERVISOR, Role.ADMINISTRATOR, Role.AUDITOR)


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A row of the page's table of rules. `when` is the rule's condition with its
    amounts as people write money."""

    rule: Rule
    tools: str
    when: str


class NeedRow(NamedTuple):
    """What calls of a tool need where `when` holds: who decides in which queue within
    which time, and what else."""

    when: str
    people: str
    queue: str
    deadline: str
    further: str


@dataclass(frozen=True, slots=True)
class ToolLine:
    """A tool on the page, with what its calls need by class and amount, and what its
    rules ask for in addition."""

    tool: ToolDefinition
    performed: str
    reversal: list[str]
    bands: list[NeedRow]
    rules: list[NeedRow]

    @property
    def needs(self) -> list[NeedRow]:
        return [*self.bands, *self.rules]


@dataclass(frozen=True, slots=True)
class PolicyPage:
    """The page of one version. The pairs are a name and its description; `recall` has
    a risk level and how long an approval at it can be undone, empty for not at all."""

    version: PolicyVersion
    document: Document
    rules: list[RuleRow]
    tools: list[ToolLine]
    steps: list[tuple[str, str]]
    queues: list[tuple[str, str]]
    measures: list[tuple[str, str]]
    recall: list[tuple[str, str]]
    for_every_tool: list[NeedRow]
    same_as: int | None  # the first earlier version with the same document
    # The number of the version that it replaced, and what it changed in that.
    former: int | None
    changes: Sequence[ChangeGroup]

    @property
    def source(self) -> str:
        """The document as people write it."""
        return write_source(self.version.document)


def check_reader(person: Person) -> None:
    """Raise NotFound for a person whose role may not read policies."""
    names = [role.value for role in READERS]
    if not person.groups.filter(name__in=names).exists():
        raise NotFound


def list_versions(person: Person) -> list[PolicyVersion]:
    """Every version, newest first, without documents. Raises NotFound."""
    check_reader(person)
    versions = PolicyVersion.objects.defer("document").order_by("-number")
    return list(versions.select_related(*_PEOPLE))


def build_policy_page(person: Person, number: int) -> PolicyPage:
    """The page of version `number`. Raises NotFound."""
    check_reader(person)
    versions = PolicyVersion.objects.select_related(*_PEOPLE)
    version = versions.filter(number=number).first()
    if version is None:
        raise NotFound
    document, former = active.load_document(version), _find_former(version)
    return PolicyPage(
        version=version,
        document=document,
        rules=[_build_rule_row(document, rule) for rule in document.rules],
        tools=[
            build_tool_line(document, tool)
            for _, tool in sorted(document.tools.items())
        ],
        steps=[
            (APPROVAL_LABELS[tier], bands.describe_steps(document.steps[tier]))
            for tier in Tier
            if tier in document.steps
        ],
        queues=sorted(document.queues.items()),
        measures=[
            (name, _describe_measure(measure))
            for name, measure in sorted(document.measures.items())
        ],
        recall=list(_list_undo_windows(document)),
        for_every_tool=[
            _build_rule_need(document, None, rule)
            for rule in document.rules
            if EVERY_TOOL in rule.tools
        ],
        same_as=versions.filter(digest=version.digest, number__lt=number)
        .order_by("number")
        .values_list("number", flat=True)
        .first(),
        former=former.number if former else None,
        changes=comparison.group_changes(
            comparison.compare_policies(active.load_document(former), document)
            if former
            else ()
        ),
    )


def _find_former(version: PolicyVersion) -> PolicyVersion | None:
    """The version that was active when this one was activated."""
    if version.activated_at is None:
        return None
    earlier = PolicyVersion.objects.filter(activated_at__lt=version.activated_at)
    return earlier.order_by("-activated_at").first()


def _list_undo_windows(document: Document) -> Iterator[tuple[str, str]]:
    for risk in Risk:
        if risk in document.recall:
            window = timedelta(seconds=document.recall[risk])
            yield risk.value, describe_duration(window) if window else ""


def _build_rule_row(document: Document, rule: Rule) -> RuleRow:
    return RuleRow(
        rule=rule,
        tools=", ".join("all tools" if t == "*" else t for t in rule.tools),
        when=changes.format_condition(document, rule),
    )


def build_tool_line(document: Document, tool: ToolDefinition) -> ToolLine:
    """The tool, and what its calls need under this policy. What a rule for every tool
    asks is not repeated."""
    rules = [
        _build_rule_need(document, tool, rule)
        for rule in bands.list_further_rules(document, tool)
        if EVERY_TOOL not in rule.tools
    ]
    return ToolLine(
        tool=tool,
        performed=PERFORMED[tool.executor.kind],
        reversal=list(_list_reversal_lines(tool)),
        bands=list(_list_band_needs(document, tool)),
        rules=rules,
    )


def _list_band_needs(document: Document, tool: ToolDefinition) -> Iterator[NeedRow]:
    classes: list[EffectClass | None] = [*(tool.classes or [])]
    for part in classes or [None]:
        title = "" if part is None else part.title or part.name
        for band in bands.list_bands(document, tool, part):
            span = band.span.text
            when = f"{title}, {span}" if title and span else title or span
            further = [*bands.list_extras(band.asked)]
            if part is None and band.asked.risk is not tool.risk:
                further.append(f"{band.asked.risk} risk")
            yield NeedRow(
                when[:1].upper() + when[1:] or "Always",
                bands.describe_people(band.asked),
                band.asked.queue if band.asked.steps else "",
                bands.describe_deadline(band.asked),
                ", ".join(further),
            )


def _build_rule_need(
    document: Document, tool: ToolDefinition | None, rule: Rule
) -> NeedRow:
    """What a rule asks for in addition, where it holds."""
    then = rule.then
    people = APPROVAL_LABELS[then.demands].lower() if then.tier or then.block else ""
    if tool is not None and (steps := document.steps_for(tool, then.demands)):
        people = bands.describe_steps(steps)
    if then.step:
        people = " and ".join(filter(None, [people, bands.describe_steps([then.step])]))
    further = [
        f"{then.risk} risk" if then.risk else "",
        "reason" if then.reason else "",
        "password or factor again" if then.step_up else "",
        f"flag {then.flag}" if then.flag else "",
    ]
    return NeedRow(
        rule.text,
        f"at least {people}" if people and not then.block else people,
        then.queue or "",
        describe_duration(then.timeout) if then.timeout else "",
        ", ".join(filter(None, further)),
    )


def _list_reversal_lines(tool: ToolDefinition) -> Iterator[str]:
    """How the tool can be reversed, with the policy's reason why it counts as
    reversible although no tool undoes it; then that reason of each class."""
    because = tool.profile.reversible_because
    kind = tool.reversal.kind if tool.reversal else ""
    by = f"by {tool.compensation.tool}" if tool.compensation else ""
    sentence = ", ".join(part for part in (kind, by) if part)
    yield _add_reason(
        sentence or ("reversible" if because else "not declared"), because
    )
    for tool_class in tool.classes or []:
        if because := tool_class.profile.reversible_because:
            yield _add_reason(f"class {tool_class.name}, reversible", because)


def _add_reason(sentence: str, because: str) -> str:
    return f"{sentence}: {because.removesuffix('.')}" if because else sentence


def _describe_measure(measure: Measure) -> str:
    what = measure.tool or f"{measure.event}s"
    kind = f"sum of {_describe_summed_amounts(measure)}" if measure.amount else "count"
    return f"{kind} of {what} per {measure.key} in {describe_duration(measure.window)}"


def _describe_summed_amounts(measure: Measure) -> str:
    return f"{measure.amount} only" if measure.alone else "all amounts"
