"""What the presentations of all kinds share, and the fallback for a kind without a
module.

`Subject` is an effect with everything known about it; `build_presentation` turns it
into a `Presentation`. The fallback shows typed rows and the badge "No dedicated view".
Pure.
"""

from __future__ import annotations

import re
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from policies import amounts, money
from policies.amounts import MovedAmount
from policies.documents import Chip, MoneyField, Piece, Segment, ToolDefinition

from . import current, inert, markup, unicode
from .amounts import build_count_changes, build_rolling_sums, build_total_figures
from .arguments import (
    HIDDEN,
    Conceal,
    Leaf,
    build_cell,
    build_enum_words,
    collect_leaves,
    format_label,
    humanise_name,
    is_encoded_text,
    is_moment,
    is_type_fixed,
)
from .compare import ComparedRows, Comparison
from .shapes import (
    Cell,
    DryRun,
    Presentation,
    Reversibility,
    RiskIndicator,
    SentencePart,
    Tag,
    TextPart,
    UninspectableArgument,
    ValuePart,
    ValueRow,
)
from .views import DedicatedView, GroupView

# The roles of a message's recipients. A sender is none.
RECIPIENTS = ("to", "cc", "bcc")
_INDEX_STEP = re.compile(r"\[[^\]]*\]")
_REVERSIBILITIES = {
    "reversible": Reversibility("Reversible", "back"),
    "partly": Reversibility("Partly reversible", "partly"),
    "irreversible": Reversibility("Irreversible", "never"),
}
UNKNOWN_REVERSIBILITY = Reversibility("Unknown: treat as irreversible", "never")


@dataclass(frozen=True)
class Subject:
    """One effect to present: its arguments and everything known about it.

    `facts` are the stored facts of the rules (money in minor units). `windows` maps
    each measure of the policy to the time over which it counts. `conceal` turns the
    JSON of a sensitive value into the text shown in its place.
    """

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
        """The before-state, keyed by argument where possible.

        The reader may return a value under the name of a role; it is moved to the path
        of the argument that has this role.
        """
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
        """A leaf as text and type, concealed where the schema says so.

        A value that the schema lists is shown in words, with the exact value in `raw`.
        """
        made = self._build_cell(leaf)
        if made.kind != "text":
            return made
        sent = any(
            is_path_within(leaf.path, outgoing) for outgoing in self.definition.outgoing
        )
        return replace(made, outgoing=sent, imitates=bool(self.imitations(leaf)))

    def _build_cell(self, leaf: Leaf) -> Cell:
        made = build_cell(
            leaf.value, self.conceal if self._is_sensitive(leaf.path) else None
        )
        if leaf.path in self.minor_currencies and not made.hides:
            return self._format_minor(leaf, made)
        schema = self.definition.arguments
        if made.kind == "text" and made.text in (
            words := build_enum_words(schema, leaf.path)
        ):
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
        is_one = is_moment(self.definition.arguments, leaf.path)
        return current.to_moment_cell(made) if is_one else made

    def as_read(self, leaf: Leaf) -> Cell:
        """The cell of a leaf of the reader's state.

        A text that is exactly a moment is shown as one, and the type is left out: no
        tool runs on this value.
        """
        return current.to_moment_cell(self.cell(leaf).settled)

    def label(self, path: str) -> str:
        """The label of a path; the policy's labels take precedence over the
        reader's."""
        return format_label(path, {**self.labels, **self.definition.labels})

    def path(self, role: str) -> str:
        """The path of the argument with this role; empty if the call has none."""
        path = self.definition.roles.get(role, "")
        return path if path and _find_value(self.args, path) is not _ABSENT else ""

    def value(self, role: str) -> Any:
        """The value of the argument with this role; None if absent or concealed."""
        path = self.path(role)
        if not path or self._is_sensitive(path) or path in self.secret:
            return None
        return _find_value(self.args, path)

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

    def fact(self, name: str) -> Any:
        """A reader's fact as the rules see it, with money in minor units; or None."""
        facts = self.facts.get("before")
        return facts.get(name) if isinstance(facts, Mapping) else None

    def undecoded(self, role: str, reason: str) -> UninspectableArgument:
        """The entry for an argument whose effect nobody can state."""
        path = self.path(role)
        name = next((leaf.name for leaf in self.under(role)), path)
        return UninspectableArgument(self.label(path), path, reason, name)

    def listed(self, *roles: str) -> list[ValueRow]:
        """Rows for the arguments with these roles, in this order, one per leaf."""
        return [
            ValueRow(self.label(leaf.path), leaf.path, self.cell(leaf))
            for role in roles
            for leaf in self.under(role)
        ]

    def words(self, *roles: str) -> list[str]:
        """The exact texts of the arguments with these roles, leaf by leaf, case-folded.
        Sensitive leaves are left out."""
        leaves = [leaf for role in roles for leaf in self.under(role)]
        shown = [self.cell(leaf) for leaf in leaves]
        return [
            cell.exact.text.casefold() for cell in shown if cell.kind != "sensitive"
        ]

    def amount(self) -> money.Money | None:
        """The first declared amount that can be read, or None."""
        headline = self.headline
        return headline[1] if headline else None

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
            return self.cell(Leaf(path, path, _find_indexed(self.args, path)))
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
        known = self.facts.get("before")
        before = known if isinstance(known, Mapping) else {}
        try:
            return amounts.list_amounts(declared, self.args, before)
        except money.InvalidMoney:
            return []

    def names_amount(self) -> bool:
        """Whether the arguments contain a declared amount; it may be optional."""
        pairs = self.definition.money
        return any(not amounts.is_left_out(part, self.args) for part in pairs)

    def _is_sensitive(self, path: str) -> bool:
        if path in self.secret:
            return True
        plain = _INDEX_STEP.sub("", path)
        hidden = self.definition.sensitive
        return any(plain == name or plain.startswith(f"{name}.") for name in hidden)


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
    the fields of the reading that a view shows. An argument that a view shows in full
    gets no row of its own.
    """
    rows, views, used = subject.rows, tuple(views), tuple(used)
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
            given = ((row.path, row.cell) for row in view.rows)
            stated |= {path for path, cell in given if (path, cell) in whole}
        elif view.covers:
            inside = (path for path, _ in whole if is_path_within(path, view.covers))
            stated |= set(inside)
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
    source, at = str(dry_run.get("source", "")), str(dry_run.get("at", ""))
    return DryRun(rows, source, at, str(dry_run.get("problem", "")))


def build_sentence(
    subject: Subject, replaced: Mapping[str, SentencePart] | None = None
) -> tuple[SentencePart, ...]:
    """Build the tool's effect sentence with its arguments as values.

    An optional argument that is absent is left out, with the words around it. `said`
    replaces the values of arguments, by name. A tool without an effect sentence is
    called by its title.
    """
    if not subject.definition.effect:
        return (TextPart(subject.definition.title),)
    parts: list[SentencePart] = []
    brought = False  # whether the previous part came with its own label
    for piece in subject.definition.sentence:
        added = list(_build_piece_parts(subject, piece, replaced or {}, brought, parts))
        own = isinstance(piece, Chip) and piece.own_words
        brought = bool(added) if own else brought and piece == " "
        parts += added
    return _tidy_spaces([*parts, TextPart(_format_absence(subject))])


def _format_absence(subject: Subject) -> str:
    """What the sentence says at its end of an amount that the call leaves out."""
    left_out = amounts.list_absent(subject.definition, subject.args)
    if any(amount.absent == "all" for amount in left_out):
        return f" ({money.WHOLE_WORDS})"
    return " (amount not given)" if left_out and not subject.moved else ""


def _build_piece_parts(
    subject: Subject,
    piece: Piece,
    replaced: Mapping[str, SentencePart],
    brought: bool,
    before: Sequence[SentencePart],
) -> Iterator[SentencePart]:
    if isinstance(piece, str):
        yield TextPart(piece)
    elif isinstance(piece, Segment):
        if all(_is_given(subject, name) for name in piece.needs):
            for inner in piece.pieces:
                yield from _build_piece_parts(subject, inner, replaced, False, before)
    elif not piece.own_words:
        yield replaced.get(piece.name) or build_argument_part(subject, piece.name)
    elif _is_given(subject, piece.name):
        yield TextPart(
            _format_joint(before, brought) + _format_inline_label(subject, piece.name)
        )
        yield replaced.get(piece.name) or build_argument_part(subject, piece.name)


def _format_joint(before: Sequence[SentencePart], brought: bool) -> str:
    """The word that joins an argument with its own label to the text before it."""
    spaced = (
        bool(before)
        and isinstance(before[-1], TextPart)
        and before[-1].text[-1:] == " "
    )
    if brought:
        return "and " if spaced else " and "
    return "with " if spaced or not before else " with "


def _format_inline_label(subject: Subject, name: str) -> str:
    """Format a label for use inside a sentence: `recipient `, but `IBAN `."""
    label = subject.label(subject.definition.fact_of(name) or name)
    plain = label[:1].isupper() and not label[1:2].isupper()
    return f"{label[0].lower() + label[1:] if plain else label} "


def _is_given(subject: Subject, name: str) -> bool:
    if fact := subject.definition.fact_of(name):
        return bool(current.format_fact(subject, fact))
    return _find_value(subject.args, name) is not _ABSENT


def _tidy_spaces(parts: Sequence[SentencePart]) -> tuple[SentencePart, ...]:
    """Merge neighbouring texts and drop the spaces that absent arguments leave."""
    tidy: list[SentencePart] = []
    for part in parts:
        if isinstance(part, TextPart) and tidy and isinstance(tidy[-1], TextPart):
            before = tidy.pop().text
            text = part.text.lstrip(" ") if before.endswith(" ") else part.text
            part = TextPart(before + text)
        if part != TextPart(""):
            tidy.append(part)
    if tidy and isinstance(tidy[-1], TextPart):
        last = tidy.pop().text.rstrip(" ")
        return (*tidy, TextPart(last)) if last else tuple(tidy)
    return tuple(tidy)


def build_argument_part(subject: Subject, name: str) -> SentencePart:
    """Build the value of one argument or fact.

    A list of more than three leaves is counted; otherwise the leaves are joined.
    """
    if fact := subject.definition.fact_of(name):
        known = current.format_fact(subject, fact)
        return ValuePart(known) if known else ValuePart("(not known)", untrusted=False)
    leaves = [leaf for leaf in subject.leaves if _is_leaf_of(leaf, name)]
    if not leaves:
        return ValuePart("(not given)", untrusted=False)
    value = _find_value(subject.args, name)
    if isinstance(value, list) and len(leaves) > 3:
        many = f"{len(value)} {'entry' if len(value) == 1 else 'entries'}"
        return ValuePart(many, untrusted=False)
    texts = tuple(filter(None, (_format_inline(subject, leaf) for leaf in leaves)))
    joined = ", ".join(texts) or "(empty)"
    return ValuePart(joined, parts=texts if len(texts) > 1 else ())


def _format_inline(subject: Subject, leaf: Leaf) -> str:
    """A leaf's text in a sentence: an amount in minor units without its currency where
    the sentence names the currency itself."""
    amount = subject.minor_money(leaf)
    text = subject.cell_in_words(leaf).text
    codes = [field.currency for field in subject.definition.money]
    codes += [amount.currency or "" for amount in subject.definition.amounts]
    named = any(code in subject.definition.chips for code in codes)
    return text.rpartition(" ")[0] if amount and named else text


def _is_leaf_of(leaf: Leaf, name: str) -> bool:
    return leaf.name == name or is_path_within(_INDEX_STEP.sub("", leaf.path), name)


def build_tags(
    subject: Subject, *more: Tag, hidden: tuple[UninspectableArgument, ...] = ()
) -> tuple[Tag, ...]:
    """Build the tags that the reviewer must not miss, loud ones first."""
    contradicted = current.build_conflict_tags(subject)
    tags = [
        *contradicted,
        *more,
        *_build_warning_tags(subject, hidden),
        *_build_profile_tags(subject),
    ]
    return tuple(sorted(dict.fromkeys(tags), key=lambda tag: not tag.loud))


def list_uninspectable(subject: Subject) -> Iterator[UninspectableArgument]:
    """List the leaves that the schema does not declare in full, or that look
    encoded."""
    for leaf in subject.leaves:
        reason = _find_uninspectable_reason(subject.definition, leaf)
        if reason:
            yield UninspectableArgument(
                subject.label(leaf.path), leaf.path, reason, leaf.name
            )


def build_reversibility(definition: ToolDefinition) -> Reversibility:
    """Build region R3 from the declaration; without one the effect counts as
    irreversible."""
    declared = definition.reversal
    if declared is None:
        return UNKNOWN_REVERSIBILITY
    base = _REVERSIBILITIES[declared.kind]
    return Reversibility(
        base.word, base.icon, declared.undo, declared.stays, declared.check
    )


_ABSENT = object()


def _find_value(value: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return _ABSENT
        value = value[name]
    return value


def _find_indexed(value: Any, path: str) -> Any:
    """The value at the path of a leaf, such as `items[0].price`; None if there is
    none."""
    for step in re.findall(r"[^.\[\]]+", path):
        if isinstance(value, list):
            value = value[int(step)] if int(step) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return value


def is_path_within(path: str, outer: str) -> bool:
    """Whether `path` is `outer` or lies inside it."""
    return path == outer or path.startswith((f"{outer}.", f"{outer}["))


def _find_uninspectable_reason(definition: ToolDefinition, leaf: Leaf) -> str:
    if leaf.name not in definition.arguments.get("properties", {}):
        return "The tool does not declare it."
    if leaf.name not in definition.inspectable:
        return "The tool does not declare all of it."
    return (
        "It looks encoded. It was not decoded." if is_encoded_text(leaf.value) else ""
    )


def format_count(number: int, thing: str) -> str:
    """A number with its noun: `1 link`, `2 links`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


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
    if any(amount.absent == "all" for amount in left_out):
        yield Tag("Asks for the whole amount", loud=True)
    if (subject.dry_run or {}).get("problem"):
        yield Tag("The dry run failed", loud=True)
    if not subject.definition.effect:
        yield Tag("No effect sentence", loud=True)
    yield from _build_domain_tags(subject)
    shown = [leaf.value for leaf in subject.leaves if isinstance(leaf.value, str)]
    for warning in inert.list_text_warnings(
        [*shown, *(leaf.path for leaf in subject.leaves)]
    ):
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
    texts = [leaf.value for leaf in subject.leaves if isinstance(leaf.value, str)]
    if any(markup.has_misleading_link(text, subject.own_domains) for text in texts):
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
