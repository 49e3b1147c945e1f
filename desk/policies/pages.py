"""Page models of the policy pages: all versions, and one version with its rules, tools
and measures in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from journal.errors import NotFound
from policies import active, changes
from policies.calendars import describe_duration
from policies.choices import APPROVAL_LABELS, Risk, Role, Tier
from policies.documents import Document, Measure, Rule, StepSpec, ToolDefinition
from policies.models import Person, PolicyVersion

ASKS = (Tier.APPROVE, Tier.ESCALATE)
READERS = (Role.REVIEWER, Role.SUPERVISOR, Role.ADMINISTRATOR, Role.AUDITOR)


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A row of the page's table of rules. `when` is the rule's condition with its
    amounts as people write money."""

    rule: Rule
    tools: str
    when: str


@dataclass(frozen=True, slots=True)
class ToolLine:
    """A row of the page's table of tools. `timeout` is empty for a tool that asks
    nobody."""

    tool: ToolDefinition
    floor: str
    timeout: str
    reversal: list[str]


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


def check_reader(person: Person) -> None:
    """Raise NotFound for a person whose role may not read policies."""
    names = [role.value for role in READERS]
    if not person.groups.filter(name__in=names).exists():
        raise NotFound


def list_versions(person: Person) -> list[PolicyVersion]:
    """Every version, newest first, without documents. Raises NotFound."""
    check_reader(person)
    versions = PolicyVersion.objects.defer("document").order_by("-number")
    return list(versions.select_related("author", "activated_by"))


def build_policy_page(person: Person, number: int) -> PolicyPage:
    """The page of version `number`. Raises NotFound."""
    check_reader(person)
    versions = PolicyVersion.objects.select_related("author", "activated_by")
    version = versions.filter(number=number).first()
    if version is None:
        raise NotFound
    document = active.load_document(version)
    return PolicyPage(
        version=version,
        document=document,
        rules=[_build_rule_row(document, rule) for rule in document.rules],
        tools=[_build_tool_line(tool) for _, tool in sorted(document.tools.items())],
        steps=[
            (APPROVAL_LABELS[tier], describe_steps(document.steps[tier]))
            for tier in Tier
            if tier in document.steps
        ],
        queues=sorted(document.queues.items()),
        measures=[
            (name, _describe_measure(measure))
            for name, measure in sorted(document.measures.items())
        ],
        recall=list(_list_undo_windows(document)),
    )


def _list_undo_windows(document: Document) -> Iterator[tuple[str, str]]:
    for risk in Risk:
        if risk in document.recall:
            window = timedelta(seconds=document.recall[risk])
            yield risk.value, describe_duration(window) if window else ""


def describe_steps(steps: Sequence[StepSpec]) -> str:
    """The people that steps ask for: `2 supervisors and 1 reviewer`."""
    parts = [
        f"{step.required} {step.role.value}{'' if step.required == 1 else 's'}"
        for step in steps
    ]
    return " and ".join(parts)


def _build_rule_row(document: Document, rule: Rule) -> RuleRow:
    return RuleRow(
        rule=rule,
        tools=", ".join("all tools" if t == "*" else t for t in rule.tools),
        when=changes.format_condition(document, rule),
    )


def _build_tool_line(tool: ToolDefinition) -> ToolLine:
    floor = "Depends on class" if tool.classes else APPROVAL_LABELS[tool.base]
    return ToolLine(
        tool=tool,
        floor=floor,
        timeout=describe_duration(tool.timeout) if tool.base in ASKS else "",
        reversal=list(_list_reversal_lines(tool)),
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
