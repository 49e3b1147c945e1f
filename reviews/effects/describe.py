"""Describe effects from stored rows: the one way for queries to put an effect into
words.

Everything is computed from the revision's canonical bytes and its stored reading;
opening a page makes no look-up (docs/invariants.md I31).
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any, TypeVar

from celery.exceptions import SoftTimeLimitExceeded
from django.db import DatabaseError
from django.utils.dateparse import parse_datetime
from structlog.stdlib import get_logger

from journal import ids
from policies import active, conflicts, facts, tool_descriptions, tools
from policies.documents import ToolDefinition
from policies.money import Money
from reviews import redaction
from reviews.choices import REVERSAL_SOURCE
from reviews.models import Proposal, Revision, StateReading
from reviews.models.base import format_removal
from reviews.presenters import (
    Presentation,
    addressed,
    build_argument_subject,
    build_removed_presentation,
    build_unreadable_presentation,
    moments,
    present_effect,
    unicode,
)
from reviews.presenters import markup as presenters_markup
from reviews.presenters.arguments import is_path_within, list_enum_values
from reviews.presenters.shapes import SentencePart, TextPart, ValuePart
from reviews.redaction import redactor

from . import evidence_files
from .evidence_files import ShownFile
from .wording import flatten_value, format_people

logger = get_logger(__name__)

SHORT_EVIDENCE = 300  # bytes
# Revisions, their tools and readings never change, so their briefs can be cached: by
# revision, hash, the newer reading that they are described with, or 0, and the period.
MOST_KEPT = 5000
# A young revision is cached until this period ends, so that what the retention rule
# removes has left every process's cache long before.
CACHE_PERIOD_S = 30 * 86400
BriefKey = tuple[int, str, int, int]
_brief_cache: OrderedDict[BriefKey, EffectBrief] = OrderedDict()


def _build_key(revision: int, digest: str, newer: int) -> BriefKey:
    return revision, digest, newer, int(time.time() // CACHE_PERIOD_S)


class TextSign(StrEnum):
    """What hostile text in a revision does; the revision stores it with its texts."""

    ARGUMENT = "argument"
    WORDS = "words"
    EVIDENCE = "evidence"
    HIDDEN = "hidden"
    MARKUP = "markup"
    WORDS_DOMAIN = "word_dom"
    EVIDENCE_DOMAIN = "evid_dom"


@dataclass(frozen=True, slots=True)
class EffectWarning:
    """What the gate warns of, on top of the page and in each row of a list. `place` is
    the anchor of the region with its cause; empty where that is the region itself."""

    text: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class EvidenceItem:
    """One item as it was stored: redacted, with what is known about it."""

    kind: str
    source: str
    at: str
    text: str
    withheld: str
    size: int
    redactions: int
    digest: str
    note: str = ""  # what is not shown as it was stored, in our words
    file: ShownFile | None = None

    @property
    def label(self) -> str:
        """The item's kind and source in the agent's words: untrusted."""
        kind = self.kind[:1].upper() + self.kind[1:]
        return f"{kind} from {self.source}" if self.source else kind

    @property
    def when(self) -> datetime | None:
        """The moment that `at` names, to the second; None for any other text."""
        return moments.parse_whole_second(self.at)

    @property
    def is_short(self) -> bool:
        """Whether the item is short enough to be shown open."""
        return self.size <= SHORT_EVIDENCE or self.file is not None

    @property
    def summary(self) -> str:
        """The item's text, and its file on one line, to compare it with another."""
        parts = (self.text, self.withheld, self.file.line if self.file else "")
        return "\n".join(filter(None, parts))

    @property
    def all_text(self) -> str:
        """Everything in it that an agent or its sources wrote: untrusted."""
        return "\n".join([self.text, *(self.file.texts if self.file else [])])

    @property
    def speaks(self) -> bool:
        """Whether any of the text addresses the reviewer."""
        return addressed.is_addressed_to_reviewer(self.all_text)

    @property
    def controls(self) -> bool:
        """Whether the text contains terminal or direction controls."""
        return unicode.has_control_characters(self.all_text)

    @property
    def markup(self) -> bool:
        """Whether the text contains active HTML elements, which are shown as text."""
        return presenters_markup.has_active_elements(self.all_text)


CANNOT_BE_READ = "Cannot be read"
Shown = TypeVar("Shown")


def present_or_report(
    row: object, build: Callable[[], Shown], instead: Callable[[], Shown]
) -> Shown:
    """Build what a page or a list shows of one stored row. Whatever is wrong with the
    row stops neither: it is logged, and `instead` is shown. Raises what is not about
    the row: an error of the database, a time limit."""
    try:
        return build()
    except (DatabaseError, SoftTimeLimitExceeded):
        raise
    except Exception as error:  # whatever is wrong with this row
        kind, key = type(row).__name__, str(getattr(row, "pk", row))
        logger.error("page.row_unreadable", kind=kind, row=key, exc_info=error)
        return instead()


def build_presentation(
    revision: Revision, reading: Mapping[str, Any] | None = None
) -> Presentation | None:
    """Build regions R1 to R3, or None for a tool that is not registered. `reading` is a
    newer reading to use instead of the revision's own. An effect that cannot be
    presented is shown as unreadable, and nobody can approve it."""
    if revision.tool is None:
        return None
    if revision.removal:
        return build_removed_presentation(revision.proposal.tool_name, revision.removal)
    return present_or_report(
        revision,
        lambda: present_arguments(revision, revision.args, reading),
        lambda: build_unreadable_presentation(revision.proposal.tool_name),
    )


def present_arguments(
    revision: Revision, args: Mapping[str, Any], reading: Mapping[str, Any] | None
) -> Presentation:
    """Present the revision's call with these arguments, its own or those of an edit."""
    known, policy = collect_facts(revision, reading), revision.policy_id
    reading = reading or revision.reading
    return present_effect(
        tools.load_definition(revision.known_tool),
        args,
        before=reading.get("before"),
        labels=reading.get("labels", {}),
        facts=known,
        conceal=build_concealer(revision),
        dry_run=reading.get("dry_run"),
        at=parse_datetime(str(reading.get("at", ""))),
        windows=active.load_stored_policy(policy).measure_windows if policy else {},
        domains=_load_own_domains(revision),
    )


def _load_own_domains(revision: Revision) -> Collection[str]:
    policy = revision.policy_id
    return () if policy is None else active.load_stored_policy(policy).own_domains


def collect_facts(
    revision: Revision, reading: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Collect the facts of the rules: with a newer reading its facts, and the conflicts
    that follow from it."""
    stored: dict[str, Any] = revision.facts
    if reading is None or not reading.get("facts"):
        return stored
    newer = {**stored, "before": facts.parse_reader_facts(reading["facts"])}
    definition = tools.load_definition(revision.known_tool)
    return {**newer, "conflicts": conflicts.list_conflicts(definition, newer)}


@dataclass(frozen=True, slots=True)
class EffectBrief:
    """An effect on one line: its sentence and what must not be missed."""

    effect: tuple[SentencePart, ...]
    warnings: tuple[str, ...]  # all that the page warns of on top, in its order
    irreversible: bool = False
    undo: str = ""  # as the tool declares it
    attempts: int = 1  # automatic attempts at most
    unreadable: bool = False  # nobody can state the effect, so nobody can approve it

    @property
    def flags(self) -> list[str]:
        """The warnings, and whether it can be undone."""
        return [*self.warnings, *(["Irreversible"] if self.irreversible else [])]


def build_brief(
    revision: Revision, reading: Mapping[str, Any] | None = None
) -> EffectBrief:
    """Build the brief for a row; a tool that is not registered has only its name."""
    return present_or_report(
        revision,
        lambda: _build_brief(revision, reading),
        lambda: EffectBrief(_UNREADABLE, (CANNOT_BE_READ,), True, unreadable=True),
    )


_UNREADABLE = (TextPart("This effect cannot be read"),)


def _build_brief(revision: Revision, reading: Mapping[str, Any] | None) -> EffectBrief:
    shown = build_presentation(revision, reading)
    warnings = tuple(warning.text for warning in list_warnings(revision, shown))
    if shown is None:
        name = ValuePart(revision.proposal.tool_name)
        return EffectBrief((TextPart("Call the unknown tool "), name), warnings)
    most = tools.load_definition(revision.known_tool).retry.attempts
    never = shown.reversal.icon == "never"
    undo, unreadable = shown.reversal.undo, shown.unreadable
    return EffectBrief(shown.sentence, warnings, never, undo, most, unreadable)


def load_briefs_by_id(
    revisions: Mapping[int, str], newer: Mapping[int, int | None] | None = None
) -> dict[int, EffectBrief]:
    """Load the briefs of many revisions, given their ids and hashes. `newer` names the
    newest reading of the state by revision, where there is one since the proposal. One
    query loads the revisions that are not in this process's cache, and one more their
    newer readings."""
    at = {pk: (newer or {}).get(pk) or 0 for pk in revisions}
    keys = {pk: _build_key(pk, digest, at[pk]) for pk, digest in revisions.items()}
    briefs = {pk: _brief_cache[key] for pk, key in keys.items() if key in _brief_cache}
    if missing := revisions.keys() - briefs.keys():
        numbers = {at[pk] for pk in missing} - {0}
        readings = StateReading.objects.in_bulk(numbers) if numbers else {}
        rows = Revision.objects.filter(pk__in=missing)
        for revision in rows.select_related("tool", "proposal"):
            reading = readings.get(at[revision.pk])
            briefs[revision.pk] = load_brief(revision, reading)
    return briefs


def load_brief(revision: Revision, newer: StateReading | None = None) -> EffectBrief:
    """Load the brief of a revision, from this process's cache if it is there. `newer`
    is the newest reading of the state since the proposal."""
    key = _build_key(revision.pk, revision.action_hash, newer.pk if newer else 0)
    if key in _brief_cache:
        return _brief_cache[key]
    shown = build_brief(revision, newer.reading if newer else None)
    is_old = revision.created_at.timestamp() < time.time() - CACHE_PERIOD_S
    if is_old or shown.unreadable:  # unreadable perhaps only now
        return shown
    _brief_cache[key] = shown
    if len(_brief_cache) > MOST_KEPT:
        _brief_cache.popitem(last=False)
    return shown


def list_warnings(
    revision: Revision, shown: Presentation | None
) -> list[EffectWarning]:
    """List what the gate warns of: the one list of the page's top and of every row.
    `shown` is the presentation, None for a tool that is not registered."""
    if shown is None:
        return [EffectWarning("Unknown tool"), *_list_text_warnings(revision)]
    return [*_list_text_warnings(revision), *list_effect_warnings(shown)]


def list_effect_warnings(shown: Presentation) -> Iterator[EffectWarning]:
    """Warnings of the effect itself: the loud tags of its view, and a long review."""
    yield from (EffectWarning(tag.text) for tag in shown.tags if tag.loud)
    if shown.is_long:
        yield EffectWarning(f"Long review: about {shown.minutes} min")


def _list_text_warnings(revision: Revision) -> Iterator[EffectWarning]:
    """Warnings of claims that keep deciders out, and of texts that try to manipulate
    the reviewer, so that nobody has to read to the end to find them."""
    if narrowed := revision.facts.get("narrowed"):  # how many, and never whom
        barred, left = format_people(narrowed["barred"]), narrowed["left"]
        text = f"The agent's claims bar {barred} of the queue; {left} can decide"
        yield EffectWarning(text, "r5")
    signs = revision.text_signs
    who = "proposer" if signs and is_by_person(revision.proposal) else "agent"
    addresses = "Possible manipulation: {} addresses the reviewer"
    imitates = "{} names a domain that imitates one of ours"
    for sign, text, what, place in (
        (TextSign.ARGUMENT, addresses, "an argument", "r2"),
        (TextSign.WORDS, addresses, f"{who} text", "r5"),
        (TextSign.EVIDENCE, addresses, "evidence", "r6"),
        (TextSign.WORDS_DOMAIN, imitates, f"{who} text".capitalize(), "r5"),
        (TextSign.EVIDENCE_DOMAIN, imitates, "Evidence", "r6"),
    ):
        if sign in signs:
            yield EffectWarning(text.format(what), place)
    tries = {TextSign.HIDDEN: "hidden or reversed text", TextSign.MARKUP: "HTML"}
    if attempts := " and ".join(tries[sign] for sign in tries if sign in signs):
        yield EffectWarning(f"Evidence contains {attempts}", "r6")


def find_text_signs(
    revision: Revision, words: Iterable[str] = (), evidence_texts: Iterable[str] = ()
) -> list[str]:
    """Find what the texts of a revision try, from all that its page prints of them.
    `words` and `evidence_texts` are the texts as they were received: an address that
    was redacted may imitate one of ours."""
    claims = list_agent_claims(revision.proposal, revision)
    texts = [revision.rationale, *(text for _, text in claims)]
    evidence = list_evidence(revision)
    ours = _load_own_domains(revision)
    shown = [text for item in evidence for text in (item.all_text, item.source)]
    signs = {
        TextSign.ARGUMENT: _is_any_argument_addressed(revision),
        TextSign.WORDS: any(map(addressed.is_addressed_to_reviewer, texts)),
        TextSign.EVIDENCE: any(item.speaks for item in evidence),
        TextSign.HIDDEN: any(item.controls for item in evidence),
        TextSign.MARKUP: any(item.markup for item in evidence),
        TextSign.WORDS_DOMAIN: bool(unicode.list_imitations([*texts, *words], ours)),
        TextSign.EVIDENCE_DOMAIN: bool(
            unicode.list_imitations([*shown, *evidence_texts], ours)
        ),
    }
    return [sign.value for sign, holds in signs.items() if holds]


def is_by_person(proposal: Proposal) -> bool:
    """Whether a person wrote the words, in a proposal to undo an effect."""
    return proposal.source == REVERSAL_SOURCE


def find_listed_amount(revision: Revision) -> Money | None:
    """Find the amount by which lists show and sort a revision: what it moves, else what
    it costs by its tool's reader. None if there is none or several, or if its page
    conceals the amount."""
    if revision.tool is None:
        return None
    definition = tools.load_definition(revision.tool)
    minor, currency = revision.amount_minor, revision.currency
    if minor is None or not currency:
        return _find_cost(definition, revision.facts.get("before"))
    return None if _conceals_amount(definition) else Money(minor, currency)


def _find_cost(definition: ToolDefinition, read: Any) -> Money | None:
    names = definition.cost_facts if isinstance(read, Mapping) else ()
    costs = [cost for name in names if (cost := parse_cost(read, name))]
    return costs[0] if len(costs) == 1 else None


def parse_cost(read: Mapping[str, Any], name: str) -> Money | None:
    """A fact as money; None where it is none."""
    value, currency = read.get(name), read.get(f"{name}_currency")
    if not isinstance(value, int) or isinstance(value, bool) or not currency:
        return None
    return Money(value, str(currency))


def _conceals_amount(definition: ToolDefinition) -> bool:
    paths = [path for pair in definition.money for path in (pair.amount, pair.currency)]
    paths += [amount.path for amount in definition.amounts if amount.path]
    hidden = definition.sensitive
    return any(is_path_within(path, name) for path in paths for name in hidden)


def build_effect_sentence(revision: Revision) -> tuple[SentencePart, ...]:
    """Build only the effect sentence."""
    return load_brief(revision).effect


def build_concealer(revision: Revision) -> Any:
    """Build the function that writes the chip for a sensitive value. The chip is keyed
    by agent and thread, so that people can recognise equal values."""

    def conceal(value: str) -> str:
        proposal = revision.proposal
        own = redactor.load_redactor(proposal.agent, proposal.thread)
        return own.chip("sensitive", value)

    return conceal


def _is_any_argument_addressed(revision: Revision) -> bool:
    """Whether a text in the arguments, which the agent was free to choose and the page
    shows, addresses the reviewer. False for a tool that is not registered."""
    if revision.tool is None:
        return False
    definition = tools.load_definition(revision.tool)
    subject = build_argument_subject(definition, revision.args, {})
    cells = [
        (leaf.value, subject.cell(leaf))
        for leaf in subject.leaves
        if isinstance(leaf.value, str)
        and leaf.value not in list_enum_values(definition.arguments, leaf.path)
    ]
    letters = [text for text, cell in cells if cell.outgoing and not cell.hides]
    texts = [text for text, cell in cells if not (cell.outgoing or cell.hides)]
    return any(map(addressed.is_letter_addressed_to_reviewer, letters)) or any(
        map(addressed.is_addressed_to_reviewer, texts)
    )


def list_agent_claims(proposal: Proposal, revision: Revision) -> list[tuple[str, str]]:
    """List what else the agent says, by heading; every text is untrusted."""
    claims = [*_list_tool_claims(revision)]
    claims.append(("Expected result", revision.expected_outcome))
    claims.append(("Undo", revision.reversal))
    for other in revision.alternatives:
        action = str(other.get("action", ""))
        why_not = str(other.get("why_not", ""))
        text = f"{action.rstrip('.')}. Rejected: {why_not}" if why_not else action
        claims.append(("Alternative", text))
    claims.append(("On behalf of", _format_on_behalf_of(proposal.on_behalf_of)))
    properties = proposal.on_behalf_of.get("properties", {})
    claims.append(("Says about them", _format_members(properties)))
    claims.append(("Only if the record has", _format_members(revision.preconditions)))
    if not ids.is_id(proposal.parent, "p"):
        claims.append(("Part of", proposal.parent))
    if revision.uncertain:
        claims.append(("Certainty", "Says it is unsure"))
    return [(heading, text) for heading, text in claims if text]


def _list_tool_claims(revision: Revision) -> Iterator[tuple[str, str]]:
    """What the agent says of a tool that the policy does not declare."""
    if revision.tool is None:
        return
    described = tools.load_description(revision.tool)
    yield "Describes the tool", described.text
    yield "Says it takes", tool_descriptions.describe_arguments(described.schema)
    if described.problem:
        yield "Its schema", f"Not kept: {described.problem}."


def _format_members(members: Mapping[str, Any]) -> str:
    texts = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in sorted(members.items())
    }
    return "\n".join(f"{name}: {text}" for name, text in texts.items())


def _format_on_behalf_of(who: Mapping[str, Any]) -> str:
    if not who:
        return ""
    chain = [str(link) for link in who.get("chain", [])]
    principal = f"{who.get('kind', '')} {who.get('id', '')}".strip()
    return principal + (f", through {', '.join(chain)}" if chain else "")


def list_evidence(revision: Revision) -> list[EvidenceItem]:
    """List the evidence in the agent's order."""
    return [
        present_or_report(
            f"{revision.pk}, evidence {number}",
            partial(_build_evidence_item, item),
            lambda: EvidenceItem("item", "", "", "", "It cannot be read.", 0, 0, ""),
        )
        for number, item in enumerate(revision.evidence, 1)
    ]


def _build_evidence_item(item: Mapping[str, Any]) -> EvidenceItem:
    text = str(item.get("text", ""))
    shown, note = _strip_html(text)
    file = evidence_files.parse_file(item)
    return EvidenceItem(
        kind=str(item.get("kind", "item")),
        source=str(item.get("source", "")),
        at=str(item.get("at", "")),
        text=shown,
        withheld=_describe_withheld(item),
        size=file.size if file else int(item.get("size", len(text.encode()))),
        redactions=redaction.count_chips([text, *(file.texts if file else [])]),
        digest=_find_digest(item)[:13].removeprefix("sha256:"),
        note=note,
        file=file,
    )


def _find_digest(item: Mapping[str, Any]) -> str:
    file = item.get("file") or {}
    return str(file.get("sha256", item.get("digest", "")))


def _strip_html(text: str) -> tuple[str, str]:
    """Replace HTML with its text, and note what is left out. A text with hidden
    characters stays as it is: parsing it as HTML would lose them."""
    hides = any(unicode.is_hidden(char) and char not in "\r\n\t" for char in text)
    if hides or not presenters_markup.is_html_document(text):
        return text, ""
    reading = presenters_markup.parse_html(text)
    if not (reading.is_read and reading.text):
        return text, ""
    return reading.text, reading.summary


def _describe_withheld(item: Mapping[str, Any]) -> str:
    if days := item.get("removed_after"):
        return format_removal("Text", days)
    if item.get("unchecked"):
        return redaction.UNCHECKED_TEXT
    return "" if "text" in item else "Not shown to you."


def format_result(value: Any) -> str:
    """Format a stored result as lines of name and value, never as JSON."""
    return "\n".join(f"{name}: {text}" for name, text in flatten_value(value))


def format_sentence(parts: Iterable[SentencePart]) -> str:
    """Format a sentence as plain text, for places that cannot draw chips."""
    return "".join(part.text for part in parts)
