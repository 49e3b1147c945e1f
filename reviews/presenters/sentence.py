"""The effect sentence of a tool, with the arguments of a call as its values. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from policies import amounts, money
from policies.documents import Chip, Piece, Quote, Segment, ToolDefinition

from . import current
from .arguments import ABSENT, Leaf, drop_indexes, find_value, is_path_within
from .shapes import SentencePart, Tag, TextPart, ValuePart

if TYPE_CHECKING:
    from .common import Subject

_GUESSED_VIEWS = {
    "email": "a mail",
    "file": "a file",
    "http": "a web request",
    "message": "a message",
    "money": "a payment",
    "shell": "a command",
    "sql": "SQL",
}
# The name of an argument, as code has it. Of a tool that nobody declared, any other is
# printed as the agent's words.
_PLAIN_NAME = re.compile(r"[A-Za-z]\w{0,31}", re.ASCII)


def build_sentence(
    subject: Subject, replaced: Mapping[str, SentencePart] | None = None
) -> tuple[SentencePart, ...]:
    """Build the tool's effect sentence with its arguments as values. An optional
    argument that is absent is left out, with the words around it. `replaced` replaces
    the values of arguments, by name."""
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


def build_guess_tags(definition: ToolDefinition) -> Iterator[Tag]:
    """What sentence and view say although the policy does not."""
    if definition.presenter in _GUESSED_VIEWS and definition.is_undeclared:
        view = _GUESSED_VIEWS[definition.presenter]
        yield Tag(f"Shown as {view}: guessed from names and values")
    if not definition.effect:
        yield Tag("Title made from names")


def _build_piece_parts(
    subject: Subject,
    piece: Piece,
    replaced: Mapping[str, SentencePart],
    brought: bool,
    before: Sequence[SentencePart],
) -> Iterator[SentencePart]:
    if isinstance(piece, str):
        yield TextPart(piece)
    elif isinstance(piece, Quote):
        yield ValuePart(piece.text)
    elif isinstance(piece, Segment):
        if all(_is_given(subject, name) for name in piece.needs):
            for inner in piece.pieces:
                yield from _build_piece_parts(subject, inner, replaced, False, before)
    elif not piece.own_words:
        yield replaced.get(piece.name) or build_argument_part(subject, piece.name)
    elif _is_given(subject, piece.name):
        yield from _build_label_parts(subject, piece.name, before, brought)
        yield replaced.get(piece.name) or build_argument_part(subject, piece.name)


def _build_label_parts(
    subject: Subject, name: str, before: Sequence[SentencePart], brought: bool
) -> Iterator[SentencePart]:
    """`with recipient `, ahead of the value. Of a tool that nobody declares, the name
    of an argument is the agent's words, unless it is one as code has it."""
    joint = _format_joint(before, brought)
    label = _format_inline_label(subject, name)
    if subject.definition.is_undeclared and not _PLAIN_NAME.fullmatch(name):
        yield from (TextPart(joint), ValuePart(label.strip()), TextPart(" "))
    else:
        yield TextPart(joint + label)


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
    return find_value(subject.args, name) is not ABSENT


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
    """Build the value of one argument or fact. A list of more than three leaves is
    counted; otherwise the leaves are joined."""
    if fact := subject.definition.fact_of(name):
        known = current.format_fact(subject, fact)
        return ValuePart(known) if known else ValuePart("(not known)", untrusted=False)
    leaves = [leaf for leaf in subject.leaves if _is_leaf_of(leaf, name)]
    if not leaves:
        return ValuePart("(not given)", untrusted=False)
    value = find_value(subject.args, name)
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
    return leaf.name == name or is_path_within(drop_indexes(leaf.path), name)
