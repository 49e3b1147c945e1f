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
from reviews.presenters import Presentation, addressed, moments, present, unicode
from reviews.presenters import markup as presenters_markup
from reviews.presenters.shapes import Change, Part, Text, Value
from reviews.redaction import redactor

from .wording import lines_of

SHORT_EVIDENCE = 300  # bytes
FLAGS = 2  # loud tags that a row of a list shows
# Revisions and their tools never change, so their briefs can be cached.
MOST_KEPT = 5000
_briefs: OrderedDict[tuple[int, str], Brief] = OrderedDict()


@dataclass(frozen=True, slots=True)
class Evidence:
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
        return moments.read_to_the_second(self.at)

    @property
    def is_short(self) -> bool:
        """Whether the item is short enough to be shown open."""
        return self.size <= SHORT_EVIDENCE

    @property
    def speaks(self) -> bool:
        """Whether any of the text addresses the reviewer."""
        return addressed.speaks(self.text)

    @property
    def controls(self) -> bool:
        """Whether the text contains terminal or direction controls."""
        return unicode.controls(self.text)

    @property
    def markup(self) -> bool:
        """Whether the text contains active HTML elements, which are shown as text."""
        return presenters_markup.is_active(self.text)


@dataclass(frozen=True, slots=True)
class Moved:
    """One argument that differs between two versions; None is shown as `none`."""

    label: str
    before: str | None
    after: str | None


def presentation(
    revision: Revision, reading: Mapping[str, Any] | None = None
) -> Presentation | None:
    """Build regions R1 to R3, or None for a tool that is not registered.

    `reading` is a newer reading to use instead of the revision's own.
    """
    if revision.tool is None:
        return None
    known = facts_of(revision, reading)
    reading = reading or revision.reading
    return present(
        tools.definition(revision.tool),
        revision.args,
        before=reading.get("before"),
        labels=reading.get("labels", {}),
        facts=known,
        conceal=concealer(revision),
        dry_run=reading.get("dry_run"),
        at=parse_datetime(str(reading.get("at", ""))),
        windows=active.windows(revision.policy_id) if revision.policy_id else {},
    )


def facts_of(
    revision: Revision, reading: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Collect the facts of the rules.

    With a newer reading they have its facts and the conflicts that follow from it.
    """
    stored: dict[str, Any] = revision.facts
    if reading is None or not reading.get("facts"):
        return stored
    newer = {**stored, "before": facts.as_read(reading["facts"])}
    found = conflicts.find(tools.definition(revision.known_tool), newer)
    return {**newer, "conflicts": found}


@dataclass(frozen=True, slots=True)
class Brief:
    """An effect on one line: its sentence and what must not be missed."""

    effect: tuple[Part, ...]
    flags: list[str]
    undo: str = ""  # as the tool declares it
    attempts: int = 1  # automatic attempts at most


def brief(revision: Revision) -> Brief:
    """Build the brief for a row; a tool that is not registered has only its name."""
    shown = presentation(revision)
    if shown is None:
        name = Value(revision.proposal.tool_name)
        return Brief((Text("Call the unknown tool "), name), ["Unknown tool"])
    loud = [tag.text for tag in shown.tags if tag.loud][:FLAGS]
    never = ["Irreversible"] if shown.reversal.icon == "never" else []
    most = tools.definition(revision.known_tool).retry.attempts
    return Brief(shown.sentence, [*loud, *never], shown.reversal.undo, most)


def briefs(revisions: Mapping[int, str]) -> dict[int, Brief]:
    """Load the briefs of many revisions, given their ids and hashes.

    One query loads those that are not in this process's cache.
    """
    found = {one[0]: _briefs[one] for one in revisions.items() if one in _briefs}
    if missing := revisions.keys() - found.keys():
        rows = Revision.objects.filter(pk__in=missing)
        for revision in rows.select_related("tool", "proposal"):
            found[revision.pk] = _kept(revision)
    return found


def brief_of(revision: Revision) -> Brief:
    """Load the brief of a revision, from this process's cache if it is there."""
    found = _briefs.get((revision.pk, revision.action_hash))
    return found or _kept(revision)


def _kept(revision: Revision) -> Brief:
    shown = _briefs[revision.pk, revision.action_hash] = brief(revision)
    if len(_briefs) > MOST_KEPT:
        _briefs.popitem(last=False)
    return shown


def effect(revision: Revision) -> tuple[Part, ...]:
    """Build only the effect sentence."""
    return brief(revision).effect


def concealer(revision: Revision) -> Any:
    """Build the function that writes the chip for a sensitive value.

    The chip is keyed by agent and thread, so that people can recognise equal values.
    """

    def conceal(value: str) -> str:
        proposal = revision.proposal
        return redactor.of(proposal.agent, proposal.thread).chip("sensitive", value)

    return conceal


def changes(before: Revision, after: Revision) -> list[Moved]:
    """List the arguments that differ, destructive changes first, with their labels.

    Empty for a tool that is not registered.
    """
    if after.tool is None:
        return []
    shown = present(
        tools.definition(after.tool),
        after.args,
        before=before.args,
        labels=after.reading.get("labels", {}),
        conceal=concealer(after),
    )
    return [_moved(change) for change in shown.changes]


def _moved(change: Change) -> Moved:
    return Moved(
        change.label,
        change.before.said if change.before else None,
        change.after.said if change.after else None,
    )


def claims(proposal: Proposal, revision: Revision) -> list[tuple[str, str]]:
    """List what else the agent says, by heading; every text is untrusted."""
    found = [("Expected", revision.expected_outcome), ("To undo", revision.reversal)]
    for other in revision.alternatives:
        action = str(other.get("action", ""))
        why_not = str(other.get("why_not", ""))
        found.append(("Alternative", f"{action}: {why_not}" if why_not else action))
    found.append(("On behalf of", _on_behalf(proposal.on_behalf_of)))
    if not ids.is_one(proposal.parent, "p"):
        found.append(("Part of", proposal.parent))
    if revision.uncertain:
        found.append(("Certainty", "Says it is unsure"))
    return [(heading, text) for heading, text in found if text]


def _on_behalf(who: Mapping[str, Any]) -> str:
    if not who:
        return ""
    chain = [str(one) for one in who.get("chain", [])]
    said = f"{who.get('kind', '')} {who.get('id', '')}".strip()
    return said + (f", through {', '.join(chain)}" if chain else "")


def evidence(revision: Revision) -> list[Evidence]:
    """List the evidence in the agent's order."""
    return [_item(item) for item in revision.evidence]


def _item(item: Mapping[str, Any]) -> Evidence:
    text = str(item.get("text", ""))
    shown, note = _plain(text)
    return Evidence(
        kind=str(item.get("kind", "item")),
        source=str(item.get("source", "")),
        at=str(item.get("at", "")),
        text=shown,
        withheld=_withheld(item),
        size=int(item.get("size", len(text.encode()))),
        redactions=redaction.chips_in(text),
        digest=str(item.get("digest", ""))[:13].removeprefix("sha256:"),
        note=note,
    )


def _plain(text: str) -> tuple[str, str]:
    """Replace HTML with its text, and note what is left out.

    A text with hidden characters stays as it is: parsing it as HTML would lose them.
    """
    hides = any(unicode.is_hidden(char) and char not in "\r\n\t" for char in text)
    if hides or not presenters_markup.is_document(text):
        return text, ""
    reading = presenters_markup.read(text)
    if not (reading.is_read and reading.text):
        return text, ""
    return reading.text, reading.summary


def _withheld(item: Mapping[str, Any]) -> str:
    if item.get("unchecked"):
        return redaction.UNCHECKED
    return "" if "text" in item else "Not shown to you."


def as_text(value: Any) -> str:
    """Format a stored result as lines of name and value, never as JSON."""
    return "\n".join(f"{name}: {said}" for name, said in lines_of(value))


def names(parts: Iterable[Part]) -> str:
    """Format a sentence as plain text, for places that cannot draw chips."""
    return "".join(part.text for part in parts)
