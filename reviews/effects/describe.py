"""Describe effects from stored rows: the one way for queries to put an effect into
words.

Everything is computed from the revision's canonical bytes and its stored reading;
opening a page makes no look-up (ux.md 3.4).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime

from journal import ids
from policies import active, conflicts, facts, tools
from reviews import redaction
from reviews.models import Proposal, Revision
from reviews.presenters import (
    Presentation,
    addressed,
    build_argument_subject,
    compare_versions,
    moments,
    present_effect,
    unicode,
)
from reviews.presenters import markup as presenters_markup
from reviews.presenters.arguments import list_enum_values
from reviews.presenters.shapes import FieldChange, SentencePart, TextPart, ValuePart
from reviews.redaction import redactor

from .wording import flatten_value

SHORT_EVIDENCE = 300  # bytes
MOST_FLAGS = 2  # loud tags that a row of a list shows
# Revisions and their tools never change, so their briefs can be cached.
MOST_KEPT = 5000
_brief_cache: OrderedDict[tuple[int, str], EffectBrief] = OrderedDict()


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
        return self.size <= SHORT_EVIDENCE

    @property
    def speaks(self) -> bool:
        """Whether any of the text addresses the reviewer."""
        return addressed.is_addressed_to_reviewer(self.text)

    @property
    def controls(self) -> bool:
        """Whether the text contains terminal or direction controls."""
        return unicode.has_control_characters(self.text)

    @property
    def markup(self) -> bool:
        """Whether the text contains active HTML elements, which are shown as text."""
        return presenters_markup.has_active_elements(self.text)


@dataclass(frozen=True, slots=True)
class ArgumentChange:
    """One argument that differs between two versions; None is shown as `none`."""

    label: str
    before: str | None
    after: str | None


def build_presentation(
    revision: Revision, reading: Mapping[str, Any] | None = None
) -> Presentation | None:
    """Build regions R1 to R3, or None for a tool that is not registered.

    `reading` is a newer reading to use instead of the revision's own.
    """
    if revision.tool is None:
        return None
    known = collect_facts(revision, reading)
    reading = reading or revision.reading
    return present_effect(
        tools.load_definition(revision.tool),
        revision.args,
        before=reading.get("before"),
        labels=reading.get("labels", {}),
        facts=known,
        conceal=build_concealer(revision),
        dry_run=reading.get("dry_run"),
        at=parse_datetime(str(reading.get("at", ""))),
        windows=active.load_measure_windows(revision.policy_id)
        if revision.policy_id
        else {},
    )


def collect_facts(
    revision: Revision, reading: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Collect the facts of the rules.

    With a newer reading they have its facts and the conflicts that follow from it.
    """
    stored: dict[str, Any] = revision.facts
    if reading is None or not reading.get("facts"):
        return stored
    newer = {**stored, "before": facts.parse_reader_facts(reading["facts"])}
    found = conflicts.list_conflicts(tools.load_definition(revision.known_tool), newer)
    return {**newer, "conflicts": found}


@dataclass(frozen=True, slots=True)
class EffectBrief:
    """An effect on one line: its sentence and what must not be missed."""

    effect: tuple[SentencePart, ...]
    flags: list[str]
    undo: str = ""  # as the tool declares it
    attempts: int = 1  # automatic attempts at most


def build_brief(revision: Revision) -> EffectBrief:
    """Build the brief for a row; a tool that is not registered has only its name."""
    shown = build_presentation(revision)
    if shown is None:
        name = ValuePart(revision.proposal.tool_name)
        return EffectBrief((TextPart("Call the unknown tool "), name), ["Unknown tool"])
    loud = [tag.text for tag in shown.tags if tag.loud][:MOST_FLAGS]
    never = ["Irreversible"] if shown.reversal.icon == "never" else []
    most = tools.load_definition(revision.known_tool).retry.attempts
    return EffectBrief(shown.sentence, [*loud, *never], shown.reversal.undo, most)


def load_briefs_by_id(revisions: Mapping[int, str]) -> dict[int, EffectBrief]:
    """Load the briefs of many revisions, given their ids and hashes.

    One query loads those that are not in this process's cache.
    """
    found = {
        one[0]: _brief_cache[one] for one in revisions.items() if one in _brief_cache
    }
    if missing := revisions.keys() - found.keys():
        rows = Revision.objects.filter(pk__in=missing)
        for revision in rows.select_related("tool", "proposal"):
            found[revision.pk] = _cache_brief(revision)
    return found


def load_brief(revision: Revision) -> EffectBrief:
    """Load the brief of a revision, from this process's cache if it is there."""
    found = _brief_cache.get((revision.pk, revision.action_hash))
    return found or _cache_brief(revision)


def _cache_brief(revision: Revision) -> EffectBrief:
    shown = _brief_cache[revision.pk, revision.action_hash] = build_brief(revision)
    if len(_brief_cache) > MOST_KEPT:
        _brief_cache.popitem(last=False)
    return shown


def build_effect_sentence(revision: Revision) -> tuple[SentencePart, ...]:
    """Build only the effect sentence."""
    return build_brief(revision).effect


def build_concealer(revision: Revision) -> Any:
    """Build the function that writes the chip for a sensitive value.

    The chip is keyed by agent and thread, so that people can recognise equal values.
    """

    def conceal(value: str) -> str:
        proposal = revision.proposal
        return redactor.load_redactor(proposal.agent, proposal.thread).chip(
            "sensitive", value
        )

    return conceal


def list_changed_arguments(before: Revision, after: Revision) -> list[ArgumentChange]:
    """List every argument that differs, destructive changes first, with their labels.

    Empty for a tool that is not registered.
    """
    if after.tool is None:
        return []
    subject = build_argument_subject(
        tools.load_definition(after.tool),
        after.args,
        before.args,
        labels=after.reading.get("labels", {}),
        conceal=build_concealer(after),
    )
    return [_build_argument_change(change) for change in compare_versions(subject)]


def _build_argument_change(change: FieldChange) -> ArgumentChange:
    return ArgumentChange(
        change.label,
        change.before.said if change.before else None,
        change.after.said if change.after else None,
    )


def list_argument_texts(revision: Revision) -> list[str]:
    """List the texts in the arguments that the agent was free to choose and the page
    shows. Empty for a tool that is not registered."""
    if revision.tool is None:
        return []
    definition = tools.load_definition(revision.tool)
    subject = build_argument_subject(definition, revision.args, {})
    return [
        leaf.value
        for leaf in subject.leaves
        if isinstance(leaf.value, str)
        and not subject.cell(leaf).hides
        and leaf.value not in list_enum_values(definition.arguments, leaf.path)
    ]


def list_agent_claims(proposal: Proposal, revision: Revision) -> list[tuple[str, str]]:
    """List what else the agent says, by heading; every text is untrusted."""
    found = [
        ("Expected result", revision.expected_outcome),
        ("Undo", revision.reversal),
    ]
    for other in revision.alternatives:
        action = str(other.get("action", ""))
        why_not = str(other.get("why_not", ""))
        text = f"{action.rstrip('.')}. Rejected: {why_not}" if why_not else action
        found.append(("Alternative", text))
    found.append(("On behalf of", _format_on_behalf_of(proposal.on_behalf_of)))
    if not ids.is_id(proposal.parent, "p"):
        found.append(("Part of", proposal.parent))
    if revision.uncertain:
        found.append(("Certainty", "Says it is unsure"))
    return [(heading, text) for heading, text in found if text]


def _format_on_behalf_of(who: Mapping[str, Any]) -> str:
    if not who:
        return ""
    chain = [str(one) for one in who.get("chain", [])]
    said = f"{who.get('kind', '')} {who.get('id', '')}".strip()
    return said + (f", through {', '.join(chain)}" if chain else "")


def list_evidence(revision: Revision) -> list[EvidenceItem]:
    """List the evidence in the agent's order."""
    return [_build_evidence_item(item) for item in revision.evidence]


def _build_evidence_item(item: Mapping[str, Any]) -> EvidenceItem:
    text = str(item.get("text", ""))
    shown, note = _strip_html(text)
    return EvidenceItem(
        kind=str(item.get("kind", "item")),
        source=str(item.get("source", "")),
        at=str(item.get("at", "")),
        text=shown,
        withheld=_describe_withheld(item),
        size=int(item.get("size", len(text.encode()))),
        redactions=redaction.count_chips(text),
        digest=str(item.get("digest", ""))[:13].removeprefix("sha256:"),
        note=note,
    )


def _strip_html(text: str) -> tuple[str, str]:
    """Replace HTML with its text, and note what is left out.

    A text with hidden characters stays as it is: parsing it as HTML would lose them.
    """
    hides = any(unicode.is_hidden(char) and char not in "\r\n\t" for char in text)
    if hides or not presenters_markup.is_html_document(text):
        return text, ""
    reading = presenters_markup.parse_html(text)
    if not (reading.is_read and reading.text):
        return text, ""
    return reading.text, reading.summary


def _describe_withheld(item: Mapping[str, Any]) -> str:
    if item.get("unchecked"):
        return redaction.UNCHECKED_TEXT
    return "" if "text" in item else "Not shown to you."


def format_result(value: Any) -> str:
    """Format a stored result as lines of name and value, never as JSON."""
    return "\n".join(f"{name}: {said}" for name, said in flatten_value(value))


def format_sentence(parts: Iterable[SentencePart]) -> str:
    """Format a sentence as plain text, for places that cannot draw chips."""
    return "".join(part.text for part in parts)
