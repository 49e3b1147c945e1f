"""What the presentations of all kinds share, and the fallback for a kind without a
module.

`Subject` is an effect with everything known about it; `build_presentation` turns it
into a `Presentation`. The fallback shows typed rows and the badge "No dedicated view".
Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from policies import amounts, money
from policies.amounts import MovedAmount
from policies.documents import MoneyField, ToolDefinition
from policies.effect_classes import Recipients

from . import current, inert, markup, moments, unicode
from .amounts import build_count_changes, build_rolling_sums, build_total_figures
from .arguments import (
    ABSENT,
    HIDDEN,
    Conceal,
    Leaf,
    build_cell,
    build_enum_words,
    collect_leaves,
    drop_indexes,
    find_value,
    format_count,
    format_label,
    humanise_name,
    is_encoded_text,
    is_moment,
    is_path_within,
    is_type_fixed,
)
from .compare import ComparedRows, Comparison
from .sentence import build_guess_tags, build_sentence
from .shapes import (
    Cell,
    DryRun,
    Presentation,
    Reversibility,
    RiskIndicator,
    Tag,
    UninspectableArgument,
    ValueRow,
)
from .views import DedicatedView, GroupView

# The roles of a message's recipients. A sender is none.
RECIPIENTS = ("to", "cc", "bcc")
_REVERSIBILITIES = {
    "reversible": ("Reversible", "back"),
    "partly": ("Partly reversible", "partly"),
    "irreversible": ("Irreversible", "never"),
}
UNKNOWN_REVERSIBILITY = Reversibility("Unknown: treat as irreversible", "never")


@dataclass(frozen=True)
class Subject:
    """One effect to present: its arguments and everything known about it. `facts` are
    the stored facts of the rules (money in minor units). `windows` maps each measure of
    the policy to the time over which it counts. `conceal` turns the JSON of a sensitive
    value into the text shown in its place."""

    definition: ToolDefinition
    args: Mapping[str, Any]
    before: Mapping[str, Any] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    conceal: Conceal = lambda _: HIDDEN
    dry_run: Mapping[str, Any] | None = None  # as the reading stores it
    at: datetime | None = None  # when the reading was made
    windows: Mapping[str, timedelta] = field(default_factory=dict)
    domains: Collection[str] = ()  # those that the policy declares as ours
    # Paths that a presenter conceals although the schema does not, such as an API key
    # in a header.
    secret: frozenset[str] = frozenset()

    @cached_property
    def leaves(self) -> list[Leaf]:
        return collect_leaves(self.args)

    @property
    def texts(self) -> list[str]:
        """The leaves that are texts."""
        return [leaf.value for leaf in self.leaves if isinstance(leaf.value, str)]

    @cached_property
    def own_domains(self) -> frozenset[str]:
        """The domains that the policy, or the tool itself, declares as ours."""
        return frozenset({*self.domains, *self.definition.own_domains})

    def imitations(self, leaf: Leaf) -> tuple[str, ...]:
        """The domains in a leaf's text and name that look like one of ours."""
        text = leaf.value if isinstance(leaf.value, str) else ""
        return unicode.list_imitations((text, leaf.path), self.own_domains)

    @cached_property
    def known(self) -> Mapping[str, Any]:
        """The before-state, keyed by argument: a value that the reader returned under
        the name of a role is moved to the path of the argument with this role."""
        known = dict(self.before or {})
        for role, path in self.definition.roles.items():
            if role in known and path in self.args and path not in known:
                known[path] = known.pop(role)
        return known

    @cached_property
    def rows(self) -> ComparedRows:
        return self.comparison.rows(self.args, self.known)

    @property
    def comparison(self) -> Comparison:
        """The comparison that writes leaves as this subject does."""
        return Comparison(self.cell_in_words, self.label, self.as_read)

    def cell(self, leaf: Leaf) -> Cell:
        """A leaf as text and type, concealed where the schema says so. A value that the
        schema lists is shown in words, with the exact value in `raw`."""
        made = self._build_cell(leaf)
        if made.kind != "text":
            return made
        sent = any(is_path_within(leaf.path, path) for path in self.definition.outgoing)
        return replace(made, outgoing=sent, imitates=bool(self.imitations(leaf)))

    def _build_cell(self, leaf: Leaf) -> Cell:
        conceal = self.conceal if self._is_sensitive(leaf.path) else None
        made = build_cell(leaf.value, conceal)
        if leaf.path in self.minor_currencies and not made.hides:
            return self._format_minor(leaf, made)
        schema = self.definition.arguments
        words = build_enum_words(schema, leaf.path) if made.kind == "text" else {}
        if made.text in words:
            return replace(made, text=words[made.text], raw=made.text)
        return made.settled if is_type_fixed(schema, leaf.path, made.kind) else made

    @cached_property
    def minor_currencies(self) -> Mapping[str, str]:
        """The paths of the amounts in minor units, each with its currency; an empty
        text for a currency that is concealed or cannot be read."""
        currencies = amounts.list_minor_currencies(self.definition, self.args)
        pairs = {field.amount: field.currency for field in self.definition.money}
        for path in currencies:
            if self._is_sensitive(pairs.get(path, "")):
                currencies[path] = ""
        return currencies

    def minor_money(self, leaf: Leaf) -> money.Money | None:
        """An amount in minor units as money; None for any other leaf."""
        currency = self.minor_currencies.get(leaf.path)
        try:
            return money.parse_minor(leaf.value, currency)
        except money.InvalidMoney:
            return None

    def _format_minor(self, leaf: Leaf, made: Cell) -> Cell:
        """An amount in minor units as people write money; its exact number is in
        `raw`."""
        amount = self.minor_money(leaf)
        if amount is None:
            return replace(made, text=f"{made.text} in minor units", raw=made.text)
        return Cell(money.format_money(amount), raw=made.text)

    def cell_in_words(self, leaf: Leaf) -> Cell:
        """The same as `cell`, but with a declared date or date-time in words."""
        made = self.cell(leaf)
        named = is_moment(self.definition.arguments, leaf.path)
        return current.to_moment_cell(made) if named else made

    def as_read(self, leaf: Leaf) -> Cell:
        """The cell of a leaf of the reader's state: a text that is exactly a moment as
        one, and without the type, because no tool runs on this value."""
        return current.to_moment_cell(self.cell(leaf).settled)

    def label(self, path: str) -> str:
        """The label of a path; the policy's labels take precedence over the
        reader's."""
        return format_label(path, {**self.labels, **self.definition.labels})

    def path(self, role: str) -> str:
        """The path of the argument with this role; empty if the call has none."""
        path = self.definition.roles.get(role, "")
        return path if path and find_value(self.args, path) is not ABSENT else ""

    def value(self, role: str) -> Any:
        """The value of the argument with this role; None if absent or concealed."""
        path = self.path(role)
        if not path or self._is_sensitive(path) or path in self.secret:
            return None
        return find_value(self.args, path)

    def text(self, role: str) -> str:
        """The value of the argument with this role if it is a text, else empty."""
        value = self.value(role)
        return value if isinstance(value, str) else ""

    def under(self, role: str) -> list[Leaf]:
        """The leaves of the argument with this role."""
        path = self.path(role)
        return [
            leaf for leaf in self.leaves if path and is_path_within(leaf.path, path)
        ]

    def read(self, name: str) -> Any:
        """What the tool's reader returned under this name, or None."""
        return (self.before or {}).get(name)

    @property
    def reader_facts(self) -> Mapping[str, Any]:
        """The reader's facts as the rules see them, with money in minor units."""
        facts = self.facts.get("before")
        return facts if isinstance(facts, Mapping) else {}

    def fact(self, name: str) -> Any:
        return self.reader_facts.get(name)

    @property
    def sums(self) -> dict[str, int]:
        """The rolling sums that the policy keeps, in minor units, by measure."""
        sums = self.facts.get("sum")
        named = sums.items() if isinstance(sums, Mapping) else ()
        return {name: total for name, total in named if isinstance(total, int)}

    @cached_property
    def recipient_classes(self) -> list[Recipients]:
        """The classes of recipients that the tool declares as inside."""
        forms = [declared.when for declared in self.definition.classes or ()]
        return [form for form in forms if isinstance(form, Recipients)]

    def is_inside(self, address: str) -> bool:
        """Whether an address is in one of the tool's recipient classes."""
        return any(
            form.matches({form.recipients[0]: [address]})
            for form in self.recipient_classes
        )

    def undecoded(self, role: str, reason: str) -> UninspectableArgument:
        """The entry for an argument whose effect nobody can state."""
        path = self.path(role)
        name = next((leaf.name for leaf in self.under(role)), path)
        return UninspectableArgument(self.label(path), path, reason, name)

    def row(self, leaf: Leaf) -> ValueRow:
        return ValueRow(self.label(leaf.path), leaf.path, self.cell(leaf))

    def listed(self, *roles: str) -> list[ValueRow]:
        """Rows for the arguments with these roles, in this order, one per leaf."""
        return [self.row(leaf) for role in roles for leaf in self.under(role)]

    def words(self, *roles: str) -> list[str]:
        """The exact texts of the arguments with these roles, leaf by leaf, case-folded.
        Sensitive leaves are left out."""
        cells = [self.cell(leaf) for role in roles for leaf in self.under(role)]
        return [cell.exact.text.casefold() for cell in cells if not cell.hides]

    def amount(self) -> money.Money | None:
        """The first declared amount that can be read, or None."""
        return self.headline[1] if self.headline else None

    @cached_property
    def headline(self) -> tuple[MoneyField, money.Money] | None:
        """The same as `amount`, with the field that declares its arguments."""
        for part in self.definition.money:
            if self._is_sensitive(part.amount):
                continue
            try:
                return part, amounts.parse_money_field(part, self.args)
            except money.InvalidMoney:
                continue
        return None

    def add_currency(self, path: str, cell: Cell | None) -> Cell | None:
        """The cell with the currency after it, if the path is that of a declared amount
        that can be read and shown."""
        if cell and path in self.minor_currencies:
            return self.cell(next(leaf for leaf in self.leaves if leaf.path == path))
        for part in self.definition.money:
            names = (part.amount, part.currency)
            if cell and part.amount == path and not any(map(self._is_sensitive, names)):
                try:
                    given = amounts.parse_money_field(part, self.args)
                except money.InvalidMoney:
                    continue
                return replace(cell, text=f"{cell.text} {given.currency}")
        return cell

    @cached_property
    def moved(self) -> list[MovedAmount]:
        """Every amount that the action moves; empty if one is concealed or
        unreadable."""
        declared = self.definition
        paths = [field.amount for field in declared.money]
        paths += [amount.path for amount in declared.amounts if amount.path]
        if any(self._is_sensitive(path) for path in paths):
            return []
        try:
            return amounts.list_amounts(declared, self.args, self.reader_facts)
        except money.InvalidMoney:
            return []

    def names_amount(self) -> bool:
        """Whether the arguments contain a declared amount; it may be optional."""
        pairs = self.definition.money
        return any(not amounts.is_left_out(part, self.args) for part in pairs)

    def _is_sensitive(self, path: str) -> bool:
        if path in self.secret:
            return True
        plain = drop_indexes(path)
        return any(is_path_within(plain, name) for name in self.definition.sensitive)


def build_presentation(
    subject: Subject,
    *tags_: Tag,
    views: Iterable[DedicatedView] = (),
    hidden: Iterable[UninspectableArgument] = (),
    used: Iterable[str] = (),
    **parts: Any,
) -> Presentation:
    """Build the presentation that fits any tool; `parts` replace single fields of it.
    `tags_` come before all other tags, and `hidden` could not be decoded. `used` are
    the fields of the reading that a view shows. A group without rows is left out, and
    an argument that a view shows in full gets no row of its own."""
    rows, used = subject.rows, tuple(used)
    views = tuple(
        view for view in views if not isinstance(view, GroupView) or view.rows
    )
    stated = _collect_stated_paths(subject, views)
    uninspectable = tuple(dict.fromkeys([*list_uninspectable(subject), *hidden]))
    fields: dict[str, Any] = {
        "title": subject.definition.title,
        "sentence": build_sentence(subject),
        "tags": build_tags(subject, *tags_, hidden=uninspectable),
        "size": (*build_total_figures(subject), *build_rolling_sums(subject)),
        "changes": tuple(row for row in rows.changes if row.path not in stated),
        "unchanged": tuple(row for row in rows.unchanged if row.path not in stated),
        "now": tuple(
            row
            for row in rows.now
            if not any(is_path_within(row.path, u) for u in used)
        ),
        "other": tuple(row for row in rows.other if row.path not in stated),
        "uninspectable": uninspectable,
        "reversal": build_reversibility(subject.definition),
        "before_known": subject.before is not None,
        "views": views,
        "dry_run": build_dry_run(subject),
        "arguments": len(subject.leaves) - len(rows.unchanged),
    }
    fields |= parts
    counted = tuple(build_count_changes(subject))
    paths = {change.path for change in counted}
    fields["changes"] = (*counted, *fields["changes"])
    fields["now"] = tuple(row for row in fields["now"] if row.path not in paths)
    top, rest = current.split_current_rows(subject, fields["now"])
    return Presentation(**{**fields, "top": top, "now": rest})


def _collect_stated_paths(subject: Subject, views: Iterable[DedicatedView]) -> set[str]:
    """Collect the paths of leaves that a view prints exactly as they are."""
    whole = {(leaf.path, subject.cell(leaf)) for leaf in subject.leaves}
    stated: set[str] = set()
    for view in views:
        if isinstance(view, GroupView):
            given = {(row.path, row.cell) for row in view.rows}
            stated |= {path for path, _ in given & whole}
        elif view.covers:
            stated |= {path for path, _ in whole if is_path_within(path, view.covers)}
    return stated


def build_dry_run(subject: Subject) -> DryRun | None:
    """Build the tool's own account of what would happen, from the stored reading."""
    dry_run = subject.dry_run
    if not dry_run:
        return None
    says = dry_run.get("says")
    given = says if isinstance(says, Mapping) else {"it says": says}
    rows = tuple(
        ValueRow(
            humanise_name(leaf.path),
            f"dry_run.{leaf.path}",
            build_cell(leaf.value).settled,
        )
        for leaf in (collect_leaves(given) if says is not None else [])
    )
    texts = (str(dry_run.get(name, "")) for name in ("source", "at", "problem"))
    return DryRun(rows, *texts)


def build_tags(
    subject: Subject, *more: Tag, hidden: tuple[UninspectableArgument, ...] = ()
) -> tuple[Tag, ...]:
    """Build the tags that the reviewer must not miss, loud ones first."""
    tags = [
        *build_loud_tags((subject.definition.is_undeclared, "Not in the policy")),
        *current.build_conflict_tags(subject),
        *more,
        *_build_warning_tags(subject, hidden),
        *_build_profile_tags(subject),
    ]
    return tuple(sorted(dict.fromkeys(tags), key=lambda tag: not tag.loud))


def list_uninspectable(subject: Subject) -> Iterator[UninspectableArgument]:
    """List the leaves that the schema does not declare in full, or that look
    encoded."""
    for leaf in subject.leaves:
        if reason := _find_uninspectable_reason(subject.definition, leaf):
            yield UninspectableArgument(
                subject.label(leaf.path), leaf.path, reason, leaf.name
            )


def build_reversibility(definition: ToolDefinition) -> Reversibility:
    """Build region R3 from the declaration; without one the effect counts as
    irreversible."""
    declared = definition.reversal
    if declared is None:
        return UNKNOWN_REVERSIBILITY
    word, icon = _REVERSIBILITIES[declared.kind]
    return Reversibility(word, icon, declared.undo, declared.stays, declared.check)


def _find_uninspectable_reason(definition: ToolDefinition, leaf: Leaf) -> str:
    if leaf.name not in definition.arguments.get("properties", {}):
        return "The tool does not declare it."
    if leaf.name not in definition.inspectable:
        return "The tool does not declare all of it."
    encoded = is_encoded_text(leaf.value)
    return "It looks encoded. It was not decoded." if encoded else ""


def add_utc_note(row: ValueRow) -> ValueRow:
    """Note the time in UTC on a moment with an offset."""
    note = moments.format_in_utc(row.cell.text)
    return replace(row, note=note) if note else row


def add_row_warnings(
    rows: Iterable[ValueRow], why: Callable[[str], Iterable[str]]
) -> list[ValueRow]:
    """Copy the rows with the warnings that `why` yields for their texts."""
    return [replace(row, warns=tuple(why(row.cell.text))) for row in rows]


def build_loud_tags(*pairs: tuple[Any, str]) -> list[Tag]:
    """Build a loud tag for each pair whose condition holds."""
    return [Tag(text, loud=True) for holds, text in pairs if holds]


def _build_warning_tags(
    subject: Subject, hidden: tuple[UninspectableArgument, ...]
) -> Iterator[Tag]:
    if hidden:
        count = format_count(len({argument.path for argument in hidden}), "argument")
        yield Tag(f"{count} could not be inspected", loud=True)
    left_out = amounts.list_absent(subject.definition, subject.args)
    yield from build_loud_tags(
        (any(part.absent == "all" for part in left_out), "Asks for the whole amount"),
        ((subject.dry_run or {}).get("problem"), "The dry run failed"),
    )
    yield from build_guess_tags(subject.definition)
    yield from _build_domain_tags(subject)
    names = [leaf.path for leaf in subject.leaves]
    for warning in inert.list_text_warnings([*subject.texts, *names]):
        yield Tag(warning, loud=True)


def _build_domain_tags(subject: Subject) -> Iterator[Tag]:
    """Tags for domains and links that pass for others, wherever they stand: one for
    recipients, who receive the message, and one for all other places."""
    recipients = {leaf.path for role in RECIPIENTS for leaf in subject.under(role)}
    domains: dict[bool, dict[str, None]] = {True: {}, False: {}}
    for leaf in subject.leaves:
        domains[leaf.path in recipients] |= dict.fromkeys(subject.imitations(leaf))
    for is_recipient, text in (
        (True, "A recipient's domain imitates one of ours"),
        (False, "The domain of a link or an address imitates one of ours"),
    ):
        if values := tuple(domains[is_recipient]):
            yield Tag(text, True, RiskIndicator.IMITATED_DOMAIN, values)
    ours = subject.own_domains
    if any(markup.has_misleading_link(text, ours) for text in subject.texts):
        yield Tag("A link leads to another address than it shows", loud=True)


def _build_profile_tags(subject: Subject) -> Iterator[Tag]:
    chosen = subject.definition.class_of(dict(subject.args))
    profile = chosen.profile if chosen else subject.definition.profile
    if subject.facts.get("uncertain"):
        yield Tag("The agent says it is unsure", loud=True)
    if chosen and chosen.title:
        yield Tag(chosen.title)
    for holds, text in (
        (profile.self_modifying, "Changes Counterseal itself"),
        (profile.regulated, "Human approval required by law or contract"),
        (profile.external, "External effect"),
        (profile.novel, "New kind of effect"),
    ):
        if holds:
            yield Tag(text)


def show(subject: Subject) -> Presentation:
    """Present the effect of a tool whose kind has no module."""
    return build_presentation(subject, dedicated=False)
