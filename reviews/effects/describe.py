"""From stored rows to what a presenter shows: the one way queries say an effect.

Everything is computed from the revision's canonical bytes and its stored reading; no
look-up happens when a page is opened (ux.md 3.4).
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
# Revisions and their tools never change, so neither does what a row says of them.
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
    note: str = ""  # what of it is not shown as it was, in our words

    @property
    def label(self) -> str:
        """What it is and where it is from, in the agent's words: untrusted."""
        kind = self.kind[:1].upper() + self.kind[1:]
        return f"{kind} from {self.source}" if self.source else kind

    @property
    def when(self) -> datetime | None:
        """The moment that `at` is, to the second; None for other words of the agent."""
        return moments.read_to_the_second(self.at)

    @property
    def is_short(self) -> bool:
        """Whether it is read at a glance, so that it need not be opened."""
        return self.size <= SHORT_EVIDENCE

    @property
    def speaks(self) -> bool:
        """Whether any of it is addressed to the reviewer."""
        return addressed.speaks(self.text)

    @property
    def controls(self) -> bool:
        """Whether it holds what a terminal or the direction of a text obeys."""
        return unicode.controls(self.text)

    @property
    def markup(self) -> bool:
        """Whether it holds elements of a page, which are text here."""
        return presenters_markup.is_active(self.text)


@dataclass(frozen=True, slots=True)
class Moved:
    """One argument that differs between two versions; None is "none"."""

    label: str
    before: str | None
    after: str | None


def presentation(
    revision: Revision, reading: Mapping[str, Any] | None = None
) -> Presentation | None:
    """Regions R1 to R3, or None for a tool nobody registered. `reading` is a newer
    one than the revision's own."""
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
    """The facts of the rules, with those of the reader and the conflicts as a newer
    reading has them."""
    stored: dict[str, Any] = revision.facts
    if reading is None or not reading.get("facts"):
        return stored
    newer = {**stored, "before": facts.as_read(reading["facts"])}
    found = conflicts.find(tools.definition(revision.known_tool), newer)
    return {**newer, "conflicts": found}


@dataclass(frozen=True, slots=True)
class Brief:
    """An effect as one line: its sentence and what must not be missed."""

    effect: tuple[Part, ...]
    flags: list[str]
    undo: str = ""  # as the tool declares it
    attempts: int = 1  # at most, by itself


def brief(revision: Revision) -> Brief:
    """For a row; a tool that nobody registered has only its name."""
    shown = presentation(revision)
    if shown is None:
        name = Value(revision.proposal.tool_name)
        return Brief((Text("Call the unknown tool "), name), ["Unknown tool"])
    loud = [tag.text for tag in shown.tags if tag.loud][:FLAGS]
    never = ["Irreversible"] if shown.reversal.icon == "never" else []
    most = tools.definition(revision.known_tool).retry.attempts
    return Brief(shown.sentence, [*loud, *never], shown.reversal.undo, most)


def briefs(revisions: Mapping[int, str]) -> dict[int, Brief]:
    """The same for many, given their ids and hashes: one query for those that this
    process never showed."""
    found = {one[0]: _briefs[one] for one in revisions.items() if one in _briefs}
    if missing := revisions.keys() - found.keys():
        rows = Revision.objects.filter(pk__in=missing)
        for revision in rows.select_related("tool", "proposal"):
            found[revision.pk] = _kept(revision)
    return found


def brief_of(revision: Revision) -> Brief:
    """The same for one that is loaded, from this process's memory where it has it."""
    found = _briefs.get((revision.pk, revision.action_hash))
    return found or _kept(revision)


def _kept(revision: Revision) -> Brief:
    shown = _briefs[revision.pk, revision.action_hash] = brief(revision)
    if len(_briefs) > MOST_KEPT:
        _briefs.popitem(last=False)
    return shown


def effect(revision: Revision) -> tuple[Part, ...]:
    """The effect sentence alone."""
    return brief(revision).effect


def concealer(revision: Revision) -> Any:
    """Stands for a sensitive value: keyed, so that equal values can be told."""

    def conceal(value: str) -> str:
        proposal = revision.proposal
        return redactor.of(proposal.agent, proposal.thread).chip("sensitive", value)

    return conceal


def changes(before: Revision, after: Revision) -> list[Moved]:
    """The arguments that differ, destructive first, with their labels."""
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
    """What else the agent says, by heading; all of it untrusted text."""
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
    """The items in the agent's order."""
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
    """HTML as its text, with what is left out. A text with hidden characters stays as
    it is: reading it as HTML would lose them."""
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
    """A stored result as lines of name and value, never as JSON."""
    return "\n".join(f"{name}: {said}" for name, said in lines_of(value))


def names(parts: Iterable[Part]) -> str:
    """A sentence as plain text, where no chip can be drawn."""
    return "".join(part.text for part in parts)
