"""A tool as the policy document declares it: schema, profile, classes, effect, calls.

The whole definition is stored with each immutable tool version.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from jsonschema_rs import Draft202012Validator
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StrictBool,
    model_serializer,
    model_validator,
)

from policies.effect_classes import Form

from .. import money, schemas
from ..calendars import Duration
from ..choices import ExecutionClass, Risk, Role, Tier
from . import sentences
from .amounts import Amount
from .argument_roles import roles_of
from .names import (
    CALLABLE,
    SOURCE,
    WEB_ADDRESS,
    Audience,
    Currency,
    Line,
    Name,
    Slug,
    ToolName,
)
from .review import Review

# gate.md section 2: what each risk level asks for when nothing says otherwise.
DEFAULT_FLOOR = {
    Risk.LOW: Tier.AUTO,
    Risk.MEDIUM: Tier.NOTIFY,
    Risk.HIGH: Tier.APPROVE,
    Risk.CRITICAL: Tier.ESCALATE,
}
SHORTEST, LONGEST = timedelta(seconds=60), timedelta(days=90)
USUAL_MAXIMUM = timedelta(hours=72)
# From authorization to the end of the execution window (gate.md section 7).
USUAL_WINDOW = timedelta(minutes=15)
SHORTEST_WINDOW, LONGEST_WINDOW = timedelta(seconds=60), timedelta(hours=24)

# Where a person must act. What needs nobody, or is refused, has no steps.
PeopleTier = Literal[Tier.APPROVE, Tier.ESCALATE]


def _not_nothing(value: Any) -> Any:
    if value == Tier.BLOCK:
        raise ValueError("a tool that is always blocked does not belong in a policy")
    return value


Floor = Annotated[Tier, BeforeValidator(_not_nothing)]


class Part(BaseModel):
    """Frozen, and nothing that the document does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True)


class Profile(Part):
    """What an error would cost; it alone sets the least tier (gate.md section 5)."""

    # Undone in the same thread by another registered tool without anyone else's help.
    reversible: StrictBool
    # 1 ephemeral, 2 wasted compute, 3 this user's own state, 4 other systems or
    # people, 5 law, money or name.
    blast_radius: int = Field(ge=1, le=5, strict=True)
    monetary: StrictBool = False
    external: StrictBool = False
    regulated: StrictBool = False  # law or contract wants a person
    novel: StrictBool = False
    self_modifying: StrictBool = False
    # Why it is reversible where no `compensation` undoes it; two people read it.
    reversible_because: Line = ""

    @model_serializer(mode="wrap")
    def _without_unused(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As the first release wrote it, where no reason is given: see
        `ToolDefinition.LATER`."""
        written: dict[str, Any] = write(self)
        if not self.reversible_because:
            written.pop("reversible_because", None)
        return written

    @property
    def least(self) -> Tier:
        """The tier below which no floor may be."""
        if not self.reversible or self.blast_radius >= 4:
            return Tier.APPROVE
        if self.novel or self.regulated or self.self_modifying:
            return Tier.APPROVE
        return Tier.NOTIFY if self.blast_radius == 3 else Tier.AUTO


class Figure(Part):
    """An amount the policy names."""

    amount: str
    currency: Currency

    @model_validator(mode="after")
    def _is_money(self) -> Figure:
        money.parse(self.amount, self.currency)
        return self

    @cached_property
    def money(self) -> money.Money:
        return money.parse(self.amount, self.currency)


class MoneyField(Part):
    """Two arguments that are one amount."""

    amount: str
    currency: str


class StepSpec(Part):
    """How many different people of a role."""

    role: Literal[Role.REVIEWER, Role.SUPERVISOR]
    required: int = Field(ge=1, le=9, strict=True)


class EffectClass(Part):
    """A kind of effect chosen from the arguments before any rule.

    Without `when` it is what everything else falls into, and so the strictest.
    """

    name: Slug
    title: Line = ""
    when: Form | None = None
    risk: Risk
    profile: Profile
    floor: Floor | None = None
    requires_reason: StrictBool = False

    @property
    def base(self) -> Tier:
        """The tier before rules."""
        return self.floor or DEFAULT_FLOOR[self.risk]


class Reversal(Part):
    """How the effect is undone, in words for the reviewer."""

    kind: Literal["reversible", "partly", "irreversible"]
    undo: Line = ""
    stays: Line = ""
    check: Line = ""


class Balance(Part):
    """A fact of the reader that the tool's amount moves, to be shown as before and
    after: what the order kept, what was paid out, what is left of a budget."""

    fact: Name
    label: Line
    moves: Literal["up", "down"]


class Count(Part):
    """A fact of the reader, a whole number and no money, that each call moves by the
    same number, to be shown as before and after: return labels, seats, attempts."""

    fact: Name
    label: Line
    by: int = Field(default=1, ge=-1000, le=1000, strict=True)

    @model_validator(mode="after")
    def _moves(self) -> Count:
        if not self.by:
            raise ValueError("a count that a call does not move is not listed")
        return self


class Limit(Part):
    """A figure that something larger would pass: of one amount, or with a measure of
    its rolling sum. For the reviewer's eye; rules are what holds it."""

    amount: str
    currency: Currency
    measure: Name | None = None

    @model_validator(mode="after")
    def _is_money(self) -> Limit:
        money.parse(self.amount, self.currency)
        return self

    @cached_property
    def money(self) -> money.Money:
        return money.parse(self.amount, self.currency)


class CallableTarget(Part):
    """A Python callable in our own process, by dotted path."""

    kind: Literal["callable"]
    path: str = Field(pattern=CALLABLE)


class CallableVerifier(Part):
    """A callable that may refuse, with the options it is called with."""

    kind: Literal["callable"]
    path: str = Field(pattern=CALLABLE)
    options: dict[str, Any] = {}


class WebhookTarget(Part):
    """A signed call over HTTP."""

    kind: Literal["webhook"]
    url: str = Field(pattern=WEB_ADDRESS, max_length=500)


class AgentTarget(Part):
    """The agent redeems the grant and performs the effect itself."""

    kind: Literal["agent"]


class LookUp(Part):
    """Where a queryable tool's effect is looked up by our reference."""

    url: str | None = Field(default=None, pattern=WEB_ADDRESS, max_length=500)
    path: str | None = Field(default=None, pattern=CALLABLE)

    @model_validator(mode="after")
    def _one_place(self) -> LookUp:
        if bool(self.url) == bool(self.path):
            raise ValueError("name a url or a path, one of them")
        return self


class ToolReader(Part):
    """A tool of tier AUTO that only reads, asked through its own executor.

    `args` are as those of a compensation, from `$args` alone. Its result is the
    before-state; a declared key, fact or precondition is the member of the result of
    the same name, or what `take` says: `customer: $result.owner.id`.
    """

    kind: Literal["tool"]
    tool: ToolName
    args: dict[str, Any] = {}
    take: dict[Name, str] = {}

    @cached_property
    def sources(self) -> dict[str, tuple[str, str]]:
        """Argument -> ("args", path), of those that are not as written."""
        return sources_of(self.args)


def sources_of(args: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Argument -> ("args" or "result", path), of those that are not as written."""
    found = {
        name: SOURCE.fullmatch(value)
        for name, value in args.items()
        if isinstance(value, str)
    }
    return {name: (at[1], at[2]) for name, at in found.items() if at}


def _of_tool(value: Any) -> Any:
    """`reader: {tool: get_file}` needs no kind."""
    if isinstance(value, Mapping) and "tool" in value and "kind" not in value:
        return {**value, "kind": "tool"}
    return value


Executor = Annotated[
    CallableTarget | WebhookTarget | AgentTarget, Field(discriminator="kind")
]
Rehearsal = Annotated[CallableTarget | WebhookTarget, Field(discriminator="kind")]
Reader = Annotated[
    Annotated[CallableTarget | WebhookTarget | ToolReader, Field(discriminator="kind")],
    BeforeValidator(_of_tool),
]
Verifier = Annotated[CallableVerifier | WebhookTarget, Field(discriminator="kind")]


class Retry(Part):
    """How often a failure that is known to have changed nothing is tried again, and how
    far apart: `base_seconds`, then twice as long each time, never over the most."""

    attempts: int = Field(default=5, ge=1, le=10, strict=True)
    base_seconds: int = Field(default=2, ge=1, le=3600, strict=True)
    most_seconds: int = Field(default=300, ge=1, le=86400, strict=True)

    def after(self, attempts: int) -> timedelta:
        """How long to wait after so many."""
        doubled = self.base_seconds * 2 ** min(max(attempts - 1, 0), 20)
        return timedelta(seconds=min(doubled, self.most_seconds))


class Compensation(Part):
    """The tool that undoes an effect, and where its arguments come from: `$args.order`
    of the effect's own arguments, `$result.id` of its result, else as written."""

    tool: ToolName
    args: dict[str, Any] = {}

    @cached_property
    def sources(self) -> dict[str, tuple[str, str]]:
        """Argument -> ("args" or "result", path), of those that are not as written."""
        return sources_of(self.args)


class Batch(Part):
    """That requests of this tool may be decided together, and up to what."""

    items: int = Field(default=50, ge=2, le=50, strict=True)
    per_item: Figure | None = None
    total: Figure | None = None
    # The arguments in which members may differ; all others must be equal.
    varying: list[str] = Field(min_length=1)
    called: Line = "requests"  # what many of them are called: refunds, labels


class ToolDefinition(Part):
    """Everything the gate knows of one tool."""

    # What later releases added. A tool that does not use it is stored without it: its
    # digest, which names it for ever, must stay what it was.
    LATER: ClassVar = frozenset(
        {"window", "audience", "retry", "compensation", "review", "amounts", "counts"}
    )

    name: ToolName
    title: Line
    description: str = Field(default="", max_length=2000)
    arguments: dict[str, Any] = Field(alias="schema")
    money: list[MoneyField] = []
    amounts: list[Amount] = []  # in lists, deeper in the arguments, known to the reader
    sensitive: list[str] = []  # arguments that only a reveal shows
    # Arguments whose values stand in no text, checkpoint or result that is kept.
    redact: list[str] = []
    queue: Slug
    risk: Risk
    profile: Profile
    classes: list[EffectClass] | None = Field(default=None, min_length=1)
    floor: Floor | None = None
    requires_reason: StrictBool = False  # a rationale and every reviewer's reason
    requires_rationale: StrictBool = False  # from the agent only
    timeout: Duration = timedelta(minutes=60)
    timeout_max: Duration | None = None
    # How long an effect may begin, and be tried again, once it was authorized.
    window: Duration = USUAL_WINDOW
    audience: Audience | None = None  # the service that takes this tool's grants
    batchable: Batch | None = None
    effect: str = Field(default="", max_length=300)  # see "The effect sentence"
    labels: dict[str, Line] = {}
    reversal: Reversal | None = None
    presenter: Name = "record"
    shown: dict[Name, str] = {}  # part of the view -> the argument that plays it
    execution_class: ExecutionClass = ExecutionClass.OPAQUE
    executor: Executor
    look_up: LookUp | None = None
    reader: Reader | None = None
    dry_run: Rehearsal | None = None  # asked what the effect would do, without doing it
    balances: list[Balance] = []  # facts that the amount moves, shown before and after
    counts: list[Count] = []  # facts that each call moves by a number, shown likewise
    limits: list[Limit] = []  # figures that the view money compares the amount with
    facts: list[Name] = []  # what rules may read of the reader's facts
    keys: list[Name] = []  # aggregation keys the reader must resolve
    # What the reader says and must still hold right before the effect.
    preconditions: list[Name] = []
    verifiers: list[Verifier] = []
    steps: dict[PeopleTier, list[StepSpec]] = {}
    retry: Retry = Retry()
    compensation: Compensation | None = None  # what undoes it, as a proposal of its own
    review: Review = Review()  # which of the reader's facts the pages show

    @property
    def moves_money(self) -> bool:
        """Whether it declares any amount."""
        return bool(self.money or self.amounts)

    @property
    def base(self) -> Tier:
        """The tier before classes and rules."""
        return self.floor or DEFAULT_FLOOR[self.risk]

    @model_serializer(mode="wrap")
    def _as_ever(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        unused = {
            name
            for name in self.LATER
            if getattr(self, name) == type(self).model_fields[name].get_default()
        }
        return {name: v for name, v in write(self).items() if name not in unused}

    @property
    def destination(self) -> str:
        """Whom its grants are for: the declared audience, else where its executor is,
        else the tool itself."""
        if self.audience:
            return self.audience
        if self.executor.kind != "webhook":
            return f"tool:{self.name}"
        parts = urlsplit(self.executor.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower()

    @property
    def longest(self) -> timedelta:
        """How far extensions may go: the larger of 72 hours and its own time-out."""
        return self.timeout_max or max(USUAL_MAXIMUM, self.timeout)

    @cached_property
    def validator(self) -> Draft202012Validator:
        """The compiled schema; unknown properties are refused."""
        return schemas.compile_schema(self.arguments)

    @cached_property
    def inspectable(self) -> frozenset[str]:
        """The declared arguments that can be stated in full to a person."""
        return frozenset(
            name
            for name, part in self.arguments.get("properties", {}).items()
            if schemas.inspectable(part, self.arguments)
        )

    @cached_property
    def roles(self) -> dict[str, str]:
        """Part of the view -> path of the argument that plays it."""
        properties = self.arguments.get("properties", {})
        return roles_of(self.presenter, self.shown, properties)

    @cached_property
    def sentence(self) -> tuple[sentences.Piece, ...]:
        """The effect sentence taken apart."""
        return sentences.read(self.effect, self.optional)

    @property
    def chips(self) -> list[str]:
        """The arguments and facts that the effect sentence names, in order."""
        return [chip.name for chip in sentences.chips(self.sentence)]

    @property
    def optional(self) -> list[str]:
        """The declared arguments that a call may leave out."""
        required = self.arguments.get("required", [])
        properties = self.arguments.get("properties", {})
        return [name for name in properties if name not in required]

    def fact_of(self, chip: str) -> str:
        """The fact that `before.<fact>` of the effect sentence names; empty for an
        argument."""
        place, dot, name = chip.partition(".")
        declared = self.arguments.get("properties", {})
        return name if dot and place == "before" and place not in declared else ""

    @property
    def strictest(self) -> EffectClass | None:
        """The class of arguments that match none."""
        classes = self.classes or []
        return max(classes, key=lambda c: (c.base.rank, c.risk.rank), default=None)

    def class_of(self, args: dict[str, Any]) -> EffectClass | None:
        """The first class whose form matches, else the strictest; None without any."""
        for effect_class in self.classes or []:
            if effect_class.when and effect_class.when.matches(args):
                return effect_class
        return self.strictest
