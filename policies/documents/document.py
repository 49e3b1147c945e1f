"""The policy document as a whole: queues, calendars, measures, tools and rules.

Docstrings and field comments of these models are printed in docs/policy-reference.md
and docs/policy.schema.json.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictBool, StringConstraints, model_validator

from ..calendars import Calendar, Duration, Zone
from ..choices import Risk, StepUpMethod, Tier
from ..conditions import Condition, compile_condition
from .alerts import Alert, build_usual_alerts
from .definitions import Figure, PeopleTier, StepSpec, ToolDefinition
from .names import (
    Currency,
    DocumentPart,
    Name,
    RuleId,
    ShortText,
    Slug,
    ToolName,
    ToolOfRule,
)
from .routes import Route
from .targets import Verifier

# Ids that the gate uses for its own checks, so no rule of a document may have them.
RESERVED_RULE_IDS = frozenset(
    {
        "policy.error",
        "tool.undeclared",
        "tool.unknown",
        "tool.floor",
        "tool.self_modifying",
        "amount.unresolved",
        "key.unresolved",
        "money.unknown_currency",
        "agent.narrows",
        "agent.resemblance",
        "agent.uncertain",
        "unreviewable",
        "standing.grant",
    }
)
EVERY_TOOL = "*"

Seconds = Annotated[int, Field(ge=0, le=3600, strict=True)]


class Measure(DocumentPart):
    """A rolling sum and count of one tool's proposals, or of events, for each value of
    a key.

    A waiting proposal counts however long it waits; one that ran counts for `window`
    from its effect on. A new measure begins empty: proposals made under an earlier
    policy are not added to it.
    """

    tool: ToolName | None = None
    event: Literal["failure"] | None = None
    key: Name  # agent, thread, or a key that the tool's reader resolves
    # An amount of the tool: its name in `money`, or the path or `before.<fact>` of one
    # of its `amounts`. The sum includes it and all other amounts of the tool. Without
    # it, proposals are only counted.
    amount: str | None = None
    alone: StrictBool = False  # sum that amount without the tool's other amounts
    window: Duration

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if bool(self.tool) == bool(self.event):
            raise ValueError("set either tool or event")
        if self.event and (self.key != "agent" or self.amount):
            raise ValueError("an event is counted with key: agent and without amount")
        if self.alone and not self.amount:
            raise ValueError("alone requires amount: set amount, or remove alone")
        return self


class Then(DocumentPart):
    """What a rule does. It can only demand more than the floor."""

    tier: Tier | None = None
    block: StrictBool = False
    risk: Risk | None = None
    queue: Slug | None = None
    step: StepSpec | None = None
    timeout: Duration | None = None  # shortens the tool's time-out, never extends it
    reason: StrictBool = False  # every reviewer must give a reason
    step_up: StrictBool = False
    flag: Annotated[str, StringConstraints(max_length=40)] = ""

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if self == Then.model_construct():
            raise ValueError("a rule must demand something")
        return self

    @property
    def demands(self) -> Tier:
        """The tier that it demands; AUTO where it demands none."""
        return Tier.BLOCK if self.block else self.tier or Tier.AUTO

    def describe(self) -> str:
        """A few words for the request's snapshot: `escalate, queue bulk-mail`."""
        words = [str(self.demands)] if self.demands is not Tier.AUTO else []
        words += [f"risk {self.risk}"] if self.risk else []
        words += [f"queue {self.queue}"] if self.queue else []
        words += [f"{self.step.required} {self.step.role}"] if self.step else []
        words += ["shorter time-out"] if self.timeout else []
        words += ["reason"] if self.reason else []
        words += ["step-up"] if self.step_up else []
        return ", ".join([*words, *([f"flag {self.flag}"] if self.flag else [])])


class Rule(DocumentPart):
    """A condition and what the policy demands where it holds. The order of rules has no
    effect."""

    id: RuleId
    text: ShortText  # the explanation that reviewers and the agent read
    tools: list[ToolOfRule] = Field(min_length=1)
    when: str
    then: Then

    @cached_property
    def condition(self) -> Condition:
        """The compiled `when`. Raises `InvalidCondition`, but not in a document that
        `parse_document` returned."""
        return compile_condition(self.when)

    def concerns(self, tool: str) -> bool:
        """Whether the rule applies to the tool of this name."""
        return tool in self.tools or EVERY_TOOL in self.tools


def _build_time_floors() -> dict[Risk, int]:
    return {Risk.LOW: 0, Risk.MEDIUM: 2, Risk.HIGH: 6, Risk.CRITICAL: 15}


def _build_micro_checks() -> dict[Risk, int]:
    return {Risk.LOW: 0, Risk.MEDIUM: 20, Risk.HIGH: 4, Risk.CRITICAL: 1}


class Desk(DocumentPart):
    """How the desk slows reviewers down where the risk justifies it."""

    # Seconds after opening the page in which a decision has to be confirmed a second
    # time; the page announces it.
    time_floor: dict[Risk, Seconds] = Field(default_factory=_build_time_floors)
    # How often a decision comes with an attention check: one in this many; 0 is never.
    # A person's first decisions, five on average, have one only where each has (1).
    micro_check: dict[Risk, Seconds] = Field(default_factory=_build_micro_checks)
    # Risk levels at which an approval by one person needs a written answer if
    # Counterseal found a risk indicator: a contradiction, an imitated domain, a first
    # payment or an unusual amount.
    written_answer: list[Risk] = Field(
        default_factory=lambda: [Risk.HIGH, Risk.CRITICAL]
    )
    # How many decisions one person may make in ten minutes; after that, approvals have
    # to wait. 0 is no limit.
    most_decisions: int = Field(default=60, ge=0, le=10_000, strict=True)
    # What a decision that needs a step-up may be confirmed with, by risk level. At a
    # level without an entry, anything that a person has.
    step_up: dict[Risk, Annotated[list[StepUpMethod], Field(min_length=1)]] = Field(
        default_factory=dict
    )

    def list_step_up_methods(self, risk: Risk) -> list[StepUpMethod]:
        """What confirms a decision at this risk."""
        wanted = self.step_up.get(risk, [*StepUpMethod])
        return [method for method in StepUpMethod if method in wanted]


class Assurance(DocumentPart):
    """Checks of the reviewers. Tell your reviewers before you switch one on."""

    # Clones of approved requests with one planted defect, which can never be executed.
    # Each reviewer gets about one in 52 decisions, and about one in 37 after many
    # unchanged approvals or missed canaries. The next one never depends on the last.
    canaries: StrictBool = False
    # The share of approvals and rejections by one person, at medium and high risk, that
    # another person reviews a second time within a day, without knowing the verdict. It
    # is four times as large for decisions before the minimum reading time, and for the
    # first ones on a payee or record.
    second_reviews: float = Field(default=0, ge=0, le=0.25)


class UnknownTools(DocumentPart):
    """Who decides on a call of a tool that this policy does not declare. Its agent
    performs it; it is never batched, and never allowed in advance."""

    hold: Slug  # the queue in which it waits
    tier: PeopleTier = Tier.APPROVE


class Document(DocumentPart):
    """One policy: everything the gate needs to decide how much authority an effect
    needs.

    Figures in rules are in minor units of `currency`. An amount in another currency
    escalates.
    """

    name: Slug
    currency: Currency
    zone: Zone = "UTC"  # the time zone of clock.hour and clock.weekday
    queues: dict[Slug, ShortText]
    calendars: dict[Name, Calendar] = Field(default_factory=dict)
    # Recall window in seconds: how long an approval can be taken back before the effect
    # starts.
    recall: dict[Risk, Seconds] = Field(default_factory=dict)
    desk: Desk = Field(default_factory=Desk)
    assurance: Assurance = Field(default_factory=Assurance)
    critical_above: Figure | None = None  # a larger amount makes the risk critical
    # The most pieces of evidence that a proposal may have.
    evidence_items: int = Field(default=12, ge=0, le=50, strict=True)
    # After this many rejections in a row, a run is paused and cannot propose until a
    # person resumes it. 0 never pauses one.
    rejections_in_a_row: int = Field(default=5, ge=0, le=100, strict=True)
    measures: dict[Name, Measure] = Field(default_factory=dict)
    tools: dict[ToolName, ToolDefinition]
    # Verifiers of each queue: they check every request in it, after the tool's own.
    verifiers: dict[Slug, list[Verifier]] = Field(default_factory=dict)
    # Tools whose high-risk calls escalate where the page cannot show them in full. For
    # other tools such a call is blocked.
    free_form: list[ToolName] = Field(default_factory=list)
    # A call of a tool that is not in `tools`: `refuse`, or whose queue it waits in.
    unknown_tools: Literal["refuse"] | UnknownTools = "refuse"
    steps: dict[PeopleTier, list[StepSpec]]  # who decides each tier
    # When a rate of the statistics raises an alarm. Without the key, an alarm is raised
    # when people approve more than 95 % of at least 200 requests without a change, or
    # less than 50 % of at least 20.
    alerts: list[Alert] = Field(default_factory=build_usual_alerts, max_length=100)
    rules: list[Rule] = Field(default_factory=list)
    # On which channels people hear of what. Without it, by mail.
    routes: list[Route] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _name_tools(cls, value: Any) -> Any:
        """Set each tool's name to its key, where it has none."""
        if not isinstance(value, dict) or not isinstance(value.get("tools"), dict):
            return value
        tools = {
            key: {**tool, "name": tool.get("name", key)}
            if isinstance(tool, dict)
            else tool
            for key, tool in value["tools"].items()
        }
        return {**value, "tools": tools}

    def recall_for(self, risk: Risk) -> int:
        """The recall window of a risk, in seconds; none where `recall` has no entry."""
        return self.recall.get(risk, 0)

    def rules_for(self, tool: str) -> Sequence[Rule]:
        """The rules that apply to a tool, in the document's order."""
        return self._rules_by_tool.get(tool, self._rules_for_every_tool)

    @property
    def held_unknown(self) -> UnknownTools | None:
        """What becomes of a call of an unknown tool; None where it is refused."""
        return self.unknown_tools if self.unknown_tools != "refuse" else None

    def steps_for(self, tool: ToolDefinition, tier: Tier) -> Sequence[StepSpec]:
        """The tool's own steps of a tier, else the document's; empty for others."""
        if tier is not Tier.APPROVE and tier is not Tier.ESCALATE:
            return ()
        return tool.steps.get(tier) or self.steps[tier]

    @cached_property
    def own_domains(self) -> frozenset[str]:
        """The domains that the tools declare as ours."""
        return frozenset().union(*(tool.own_domains for tool in self.tools.values()))

    @cached_property
    def _rules_for_every_tool(self) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.rules if EVERY_TOOL in rule.tools)

    @cached_property
    def _rules_by_tool(self) -> dict[str, tuple[Rule, ...]]:
        return {
            name: tuple(rule for rule in self.rules if rule.concerns(name))
            for name in self.tools
        }
