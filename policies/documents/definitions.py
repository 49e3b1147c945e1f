"""The parts of a tool in the policy document: schema, profile, effect classes, effect
sentence, executor and so on.

The whole definition is stored with each immutable tool version. Docstrings and field
comments of these models are printed in docs/policy-reference.md and
docs/policy.schema.json.
"""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from jsonschema_rs import Draft202012Validator
from pydantic import BeforeValidator, Field, StrictBool, model_validator

from policies.effect_classes import Form, Recipients

from .. import money, schemas
from ..calendars import Duration
from ..choices import ExecutionClass, Risk, Role, Tier
from . import sentences
from .amounts import Amount, MoneyField
from .argument_roles import LETTER_NAMES, OUTGOING_ROLES, ROLES, assign_roles
from .names import Audience, Currency, DocumentPart, Name, ShortText, Slug, ToolName
from .review import Review
from .targets import Compensation, Executor, LookUp, Reader, Rehearsal, Retry, Verifier
from .usual_sentences import build_usual_sentence, is_plain, shorten_description

# The tier of each risk level where no floor is declared.
DEFAULT_FLOOR = {
    Risk.LOW: Tier.AUTO,
    Risk.MEDIUM: Tier.NOTIFY,
    Risk.HIGH: Tier.APPROVE,
    Risk.CRITICAL: Tier.ESCALATE,
}
SHORTEST, LONGEST = timedelta(seconds=60), timedelta(days=90)
LONGEST_MEASURE = timedelta(days=3650)
USUAL_MAXIMUM = timedelta(hours=72)
# From authorization to the end of the execution window.
USUAL_WINDOW = timedelta(minutes=15)
SHORTEST_WINDOW, LONGEST_WINDOW = timedelta(seconds=60), timedelta(hours=24)

# The tiers in which people must decide. Only these have steps.
PeopleTier = Literal[Tier.APPROVE, Tier.ESCALATE]


def _refuse_block_floor(value: Any) -> Any:
    if value == Tier.BLOCK:
        raise ValueError("a tool cannot always be blocked: remove the tool instead")
    return value


Floor = Annotated[Tier, BeforeValidator(_refuse_block_floor)]


class Profile(DocumentPart):
    """What an error would cost. It alone sets the lowest tier."""

    # Whether another registered tool can undo the effect in the same run, without
    # anyone else's help.
    reversible: StrictBool
    # 1 ephemeral, 2 wasted compute, 3 this user's own state, 4 other systems or
    # people, 5 law, money or reputation.
    blast_radius: int = Field(ge=1, le=5, strict=True)
    monetary: StrictBool = False
    external: StrictBool = False
    regulated: StrictBool = False  # law or a contract requires a person
    novel: StrictBool = False
    self_modifying: StrictBool = False
    # Why it is reversible where no `compensation` undoes it; the two administrators who
    # save and activate the policy read it.
    reversible_because: ShortText = ""

    @property
    def least(self) -> Tier:
        """The lowest tier that a floor may have."""
        if not self.reversible or self.blast_radius >= 4:
            return Tier.APPROVE
        if self.novel or self.regulated or self.self_modifying:
            return Tier.APPROVE
        return Tier.NOTIFY if self.blast_radius == 3 else Tier.AUTO


class Figure(DocumentPart):
    """An amount of money in the policy."""

    amount: str
    currency: Currency

    @model_validator(mode="after")
    def _is_money(self) -> Figure:
        money.parse(self.amount, self.currency)
        return self

    @cached_property
    def money(self) -> money.Money:
        """The amount in minor units."""
        return money.parse(self.amount, self.currency)


class StepSpec(DocumentPart):
    """How many different people of a role must approve."""

    role: Literal[Role.REVIEWER, Role.SUPERVISOR]
    required: int = Field(ge=1, le=9, strict=True)


class EffectClass(DocumentPart):
    """A kind of effect, which the arguments choose before any rule applies.

    The class without `when` takes all arguments that no other class matches. It must be
    the strictest.
    """

    name: Slug
    title: ShortText = ""
    when: Form | None = None
    risk: Risk
    profile: Profile
    floor: Floor | None = None
    requires_reason: StrictBool = False

    @property
    def base(self) -> Tier:
        """The tier before any rule."""
        return self.floor or DEFAULT_FLOOR[self.risk]


class Reversal(DocumentPart):
    """How the effect can be undone, in words for the reviewer."""

    kind: Literal["reversible", "partly", "irreversible"]
    undo: ShortText = ""
    stays: ShortText = ""
    check: ShortText = ""


class Balance(DocumentPart):
    """A fact of the reader that the tool's amount changes. The page shows it before and
    after: what is left of an order, what was paid out, what is left of a budget."""

    fact: Name
    label: ShortText
    moves: Literal["up", "down"]


class Count(DocumentPart):
    """A fact of the reader that each call changes by the same whole number. It is a
    whole number and no money. The page shows it before and after: return labels, seats,
    attempts."""

    fact: Name
    label: ShortText
    by: int = Field(default=1, ge=-1000, le=1000, strict=True)

    @model_validator(mode="after")
    def _moves(self) -> Count:
        if not self.by:
            raise ValueError("by must not be 0")
        return self


class Limit(Figure):
    """A figure that the page compares with the call's amount, or with the rolling sum
    of a measure. It only informs the reviewer; rules enforce limits."""

    measure: Name | None = None


class Batch(DocumentPart):
    """Allows requests of this tool to be decided together, and sets the limits."""

    items: int = Field(default=50, ge=2, le=50, strict=True)
    per_item: Figure | None = None
    total: Figure | None = None
    # The arguments that may differ between the requests; all others must be equal.
    varying: list[str] = Field(min_length=1)
    called: ShortText = "requests"  # the plural word for them: refunds, labels


class StandingTerms(DocumentPart):
    """Lets a person allow calls of a tool in advance: those of one run, for a short
    time and up to a number. A standing grant covers only calls for which the policy's
    rules ask one approval. It never goes below the tool's floor."""

    role: Literal[Role.REVIEWER, Role.SUPERVISOR] = Role.SUPERVISOR  # who may, at least
    minutes: int = Field(default=15, ge=1, le=60, strict=True)
    uses: int = Field(default=40, ge=1, le=200, strict=True)


class ToolDefinition(DocumentPart):
    """Everything the gate knows about one tool."""

    name: ToolName
    title: ShortText
    description: str = Field(default="", max_length=2000)
    arguments: dict[str, Any] = Field(alias="schema")
    money: list[MoneyField] = []
    amounts: list[Amount] = []  # money that is not in two plain arguments
    sensitive: list[str] = []  # arguments hidden on the page until a person reveals one
    # Arguments whose values are removed from stored texts, checkpoints and results.
    redact: list[str] = []
    queue: Slug
    risk: Risk
    profile: Profile
    classes: list[EffectClass] | None = Field(default=None, min_length=1)
    floor: Floor | None = None
    requires_reason: StrictBool = False  # the agent's rationale and reviewers' reasons
    requires_rationale: StrictBool = False  # only the agent's rationale
    timeout: Duration = timedelta(minutes=60)
    timeout_max: Duration | None = None
    # Execution window: how long after the authorization an effect may begin and be
    # tried again.
    window: Duration = USUAL_WINDOW
    audience: Audience | None = None  # the service that accepts this tool's grants
    batchable: Batch | None = None
    standing_grant: StandingTerms | None = None  # lets people allow calls in advance
    # After this many proposals in one run without a person's decision or a change of
    # plan, the next call of this tool pauses the run. 0 never pauses one.
    iteration_cap: int = Field(default=0, ge=0, le=1000, strict=True)
    # An edit by a reviewer that raises an amount, changes the currency, a key or whom
    # the effect reaches: `second_person` asks somebody else to decide it, `alone` lets
    # the editor's own approval count.
    edit: Literal["second_person", "alone"] = "second_person"
    # See "The effect sentence". Without it, one is made of the title and the arguments.
    effect: str = Field(default="", max_length=300)
    labels: dict[str, ShortText] = {}
    reversal: Reversal | None = None
    presenter: Name = "record"
    shown: dict[Name, str] = {}  # part of the view -> the argument shown there
    execution_class: ExecutionClass = ExecutionClass.OPAQUE
    executor: Executor
    look_up: LookUp | None = None
    reader: Reader | None = None
    dry_run: Rehearsal | None = None  # says what the effect would do, without doing it
    balances: list[Balance] = []  # facts that the amount changes
    counts: list[Count] = []  # facts that each call changes by a fixed number
    limits: list[Limit] = []  # figures that the view money compares the amount with
    facts: list[Name] = []  # the reader's facts that rules may read
    keys: list[Name] = []  # aggregation keys that the reader must resolve
    # Values from the reader that must still hold right before the effect.
    preconditions: list[Name] = []
    verifiers: list[Verifier] = []
    steps: dict[PeopleTier, list[StepSpec]] = {}
    retry: Retry = Retry()
    compensation: Compensation | None = None  # the tool that undoes it, when proposed
    review: Review = Review()  # the reader's facts that the pages show

    @property
    def is_undeclared(self) -> bool:
        """Whether no policy declares it: see `UndeclaredTool`."""
        return isinstance(self, UndeclaredTool)

    @property
    def quote(self) -> str:
        """What the agent calls the tool, in the title of a request: its words, and only
        where nobody declares the tool."""
        return ""

    @property
    def moves_money(self) -> bool:
        """Whether the tool declares any amount of money."""
        return bool(self.declared_amounts)

    @property
    def declared_amounts(self) -> list[MoneyField | Amount]:
        """All money of the tool: in two plain arguments, then any other."""
        return [*self.money, *self.amounts]

    @cached_property
    def cost_facts(self) -> list[str]:
        """The facts that say what a call costs that moves money, although no amount is
        declared: amounts among the columns of a batch, else in the effect sentence,
        else on top of the page."""
        profiles = [self.profile, *(part.profile for part in self.classes or ())]
        if self.moves_money or not any(part.monetary for part in profiles):
            return []
        named = [fact for chip in self.chips if (fact := self.fact_of(chip))]
        for names in (self.review.columns, named, self.review.facts):
            if costs := [fact for fact in names if f"{fact}_currency" in self.facts]:
                return list(dict.fromkeys(costs))
        return []

    @cached_property
    def plain_amounts(self) -> frozenset[str]:
        """The arguments whose amounts rules compare in minor units."""
        paths = {amount.path for amount in self.amounts if amount.path and amount.unit}
        declared = self.arguments.get("properties", {})
        return frozenset(pair.amount for pair in self.money) | (paths & {*declared})

    @property
    def by_agent(self) -> bool:
        """Whether the agent performs the effect itself."""
        return self.executor.kind == "agent"

    @property
    def base(self) -> Tier:
        """The tier before classes and rules."""
        return self.floor or DEFAULT_FLOOR[self.risk]

    @property
    def destination(self) -> str:
        """The audience of its grants: the declared one, else the origin of its webhook
        executor, else `tool:<name>`."""
        if self.audience:
            return self.audience
        if self.executor.kind != "webhook":
            return f"tool:{self.name}"
        parts = urlsplit(self.executor.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower()

    @property
    def longest(self) -> timedelta:
        """How far the time-out may be extended, by default to 72 hours or more."""
        return self.timeout_max or max(USUAL_MAXIMUM, self.timeout)

    @cached_property
    def validator(self) -> Draft202012Validator:
        """The compiled schema, which refuses unknown properties."""
        return schemas.compile_schema(self.arguments)

    @cached_property
    def inspectable(self) -> frozenset[str]:
        """The declared arguments whose values can be shown to a person in full."""
        return frozenset(
            name
            for name, part in self.arguments.get("properties", {}).items()
            if schemas.is_inspectable(part, self.arguments)
        )

    @cached_property
    def own_domains(self) -> frozenset[str]:
        """The domains that the tool's classes of recipients declare as ours."""
        forms = [c.when for c in self.classes or ()]
        return frozenset(
            domain
            for form in forms
            if isinstance(form, Recipients)
            for domain in form.domains
        )

    @cached_property
    def outgoing(self) -> frozenset[str]:
        """The paths of the texts that the effect sends to somebody to read, such as the
        body of a mail to a customer."""
        if names := OUTGOING_ROLES.get(self.presenter):
            return frozenset(self.roles[role] for role in names if role in self.roles)
        return LETTER_NAMES if self.presenter not in ROLES else frozenset()

    @cached_property
    def roles(self) -> dict[str, str]:
        """Role in the view -> path of the argument that has it."""
        properties = self.arguments.get("properties", {})
        return assign_roles(self.presenter, self.shown, properties)

    @cached_property
    def sentence(self) -> tuple[sentences.Piece, ...]:
        """The parsed effect sentence; the usual one where the tool has none."""
        if self.effect:
            return sentences.parse_sentence(self.effect, self.optional)
        pairs = [(pair.amount, pair.currency) for pair in self.money]
        return build_usual_sentence(
            self.title,
            list(self.arguments.get("properties", {})),
            self.arguments.get("required", []),
            roles=self.roles,
            money=next(iter(pairs), None),
            quote=self.quote,
        )

    @property
    def chips(self) -> list[str]:
        """The arguments and facts that the effect sentence names, in order."""
        return [chip.name for chip in sentences.list_chips(self.sentence)]

    @property
    def optional(self) -> list[str]:
        """The declared arguments that a call may leave out."""
        required = self.arguments.get("required", [])
        properties = self.arguments.get("properties", {})
        return [name for name in properties if name not in required]

    def fact_of(self, chip: str) -> str:
        """The fact that a chip `before.<fact>` of the effect sentence names; empty for
        a chip that names an argument."""
        place, dot, name = chip.partition(".")
        declared = self.arguments.get("properties", {})
        return name if dot and place == "before" and place not in declared else ""

    @property
    def strictest(self) -> EffectClass | None:
        """The class for arguments that no form matches; None without classes."""
        classes = self.classes or []
        return max(classes, key=lambda c: (c.base.rank, c.risk.rank), default=None)

    def class_of(self, args: dict[str, Any]) -> EffectClass | None:
        """The first class whose form matches, else the strictest; None without any."""
        for effect_class in self.classes or []:
            if effect_class.when and effect_class.when.matches(args):
                return effect_class
        return self.strictest


class UndeclaredTool(ToolDefinition):
    """A tool that the policy does not declare, as far as one call of it shows."""

    undeclared: Literal[True] = True
    # The schema that the agent sent of it: its words, which check nothing.
    seen_schema: dict[str, Any] = {}
    schema_problem: str = ""  # why that schema is not kept

    @property
    def quote(self) -> str:
        return shorten_description(self.description) if is_plain(self.name) else ""
