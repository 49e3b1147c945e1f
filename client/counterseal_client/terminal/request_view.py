"""A request as lines of a terminal: what its page shows a person to decide on, in the
order of the page. What an agent or somebody outside wrote stands behind a bar."""

from __future__ import annotations

import difflib
import itertools
import json
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from ..people import (
    Change,
    CommandStep,
    CurrentState,
    DryRun,
    EffectView,
    Evidence,
    EvidenceFile,
    FileChange,
    RequestDetail,
    RequestLine,
    Reversal,
    Row,
    VersionChange,
)
from .text import Line, Style

MOST_LINES = 40
MOST_CHARACTERS = 4000
"""Of one text of an agent or from outside; the page has the rest."""
MOST_COMPARED = 250_000
"""Pairs of lines; above it, all lines of now come before all lines of after."""


def describe_request(request: RequestDetail, url: str) -> Iterator[Line]:
    """Everything that a person decides on."""
    yield Line(request.title, style=Style.STRONG)
    yield Line(f"{describe_origin(request)} · {request.id}, version {request.version}")
    yield Line(describe_authority(request))
    tags = {tag.text for tag in request.tags}
    for text in dict.fromkeys(request.flags):
        if text not in tags:
            yield Line(f"Warning: {text}", style=Style.WARNING)
    yield from _describe_facts(request)
    yield from _describe_since(request.since)
    yield from _describe_changes(request)
    for view in request.views:
        yield from _describe_view(view)
    yield from _describe_rows("Arguments that change no field", request.other)
    yield from _describe_arguments(request)
    yield from _describe_dry_run(request.dry_run)
    yield from _describe_reversal(request.reversal)
    yield from _describe_rules(request)
    yield from _describe_words(request)
    yield from _describe_evidence(request.evidence)
    yield Line()
    yield Line(f"Its page: {url}", copied=True)


def describe_line(request: RequestLine) -> Iterator[Line]:
    """A request in a list: what the gate warns of, then the effect."""
    for text in dict.fromkeys(request.flags):
        yield Line(f"Warning: {text}", style=Style.WARNING)
    yield Line(f"{request.id}  {request.title}", style=Style.STRONG)
    notes = [describe_origin(request), f"queue {request.queue}"]
    notes += [f"{describe_time_left(request)}"] if request.expires_at else []
    notes += ["needs your password, on its page"] if request.step_up else []
    yield Line(" · ".join(notes), indent=2)
    if not request.can_decide and request.why_not:
        yield Line(request.why_not, indent=2, style=Style.FAINT)


def describe_origin(request: RequestLine) -> str:
    """Who asks, in which run, and how bad it can be."""
    joined = f", proposed {request.joined + 1} times" if request.joined else ""
    return f"{request.risk} risk · agent {request.agent}, run {request.thread}{joined}"


def describe_time_left(request: RequestLine) -> str:
    """How long the request stays open, by this machine's clock."""
    if request.expires_at is None:
        return "no deadline"
    left = int(request.expires_at.timestamp() - time.time())
    if left <= 0:
        return "its time is over"
    for seconds, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if left >= seconds:
            count = left // seconds
            return f"{count} {name}{'' if count == 1 else 's'} left"
    return "less than a minute left"


def format_moment(text: str) -> str:
    """A time of the API in UTC, to the second; another text as it is."""
    try:
        moment = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return text
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def describe_authority(request: RequestLine) -> str:
    """Who must approve, and for how long the request is open."""
    steps = [
        f"{step.required} {step.role}{'' if step.required == 1 else 's'}"
        f" ({step.given} approved)"
        for step in request.steps
    ]
    needed = ", then ".join(steps) or "nobody"
    return f"Needs {needed} · {request.status} · {describe_time_left(request)}"


def _describe_facts(request: RequestDetail) -> Iterator[Line]:
    for tag in request.tags:
        style = Style.WARNING if tag.loud else Style.PLAIN
        yield Line(f"{'Warning: ' if tag.loud else ''}{tag.text}", style=style)
    for figure in request.size:
        note = f" ({figure.note})" if figure.note else ""
        yield Line(f"{figure.label}: {figure.value}{note}")
    for value in request.uninspectable:
        text = f"Warning: {value.label} is not shown in full: {value.reason}"
        yield Line(text, style=Style.WARNING)


def _describe_since(since: VersionChange | None) -> Iterator[Line]:
    if since is None:
        return
    yield from _open_section(f"Changed since version {since.version} ({since.cause})")
    for move in since.diff:
        yield from _describe_difference(move.label, move.before, move.after)
    if since.words:
        yield Line("The agent's words or its evidence changed, too.", indent=2)


def _describe_changes(request: RequestDetail) -> Iterator[Line]:
    if not request.before.known:
        yield from _open_section("The current state is not known")
        yield Line(request.before.problem, indent=2, style=Style.WARNING)
    if request.diff:
        yield from _open_section(f"What changes{_format_source(request.before)}")
    for change in request.diff:
        before, after = _get_texts(change)
        yield from _describe_difference(change.label, before, after)
    rows = (*request.before.top, *request.before.unchanged, *request.before.now)
    yield from _describe_rows("What stays as it is", rows)


def _format_source(before: CurrentState) -> str:
    if not before.source:
        return ""
    return f", as read from {before.source} at {format_moment(before.at)}"


def _get_texts(change: Change) -> tuple[str | None, str | None]:
    before, after = change.before, change.after
    return (before.text if before else None, after.text if after else None)


def _describe_difference(
    label: str, before: str | None, after: str | None
) -> Iterator[Line]:
    """A field with its lines of now (-) and of after (+)."""
    yield Line(label, indent=2)
    old = [] if before is None else before.split("\n")
    new = [] if after is None else after.split("\n")
    styles = {"-": Style.REMOVED, "+": Style.ADDED, "@": Style.FAINT}
    for text in _list_differences(old, new):
        yield Line(text, indent=4, style=styles.get(text[0], Style.PLAIN))


def _list_differences(old: list[str], new: list[str]) -> Iterator[str]:
    if len(old) * len(new) > MOST_COMPARED:
        yield from (f"- {text}" for text in old)
        yield from (f"+ {text}" for text in new)
        return
    found = difflib.unified_diff(old, new, lineterm="")
    for text in itertools.islice(found, 2, None):  # after the names of two files
        if not text.startswith("@@"):
            yield f"{text[0]} {text[1:]}"
        elif len(old) > 1 or len(new) > 1:
            yield text


def _describe_view(view: EffectView) -> Iterator[Line]:
    yield from _open_section(view.title or "The effect")
    if view.note:
        yield Line(view.note, indent=2)
    if view.problem:
        yield Line(f"Warning: {view.problem}", indent=2, style=Style.WARNING)
    yield from _list_rows(view.rows)
    yield from _describe_steps(view.steps)
    for inner in view.inside:
        yield Line(inner.title, indent=2)
        if inner.problem:
            yield Line(f"Warning: {inner.problem}", indent=4, style=Style.WARNING)
        yield from _quote_text(inner.text, indent=4)
        yield from _describe_steps(inner.steps)
    for file in view.files:
        yield from _describe_file(file)


def _describe_steps(steps: Iterable[CommandStep]) -> Iterator[Line]:
    for step in steps:
        words = " ".join(word.text for word in step.tokens)
        yield Line(f"{step.joined} {words}".strip(), indent=2)
        for word in step.tokens:
            for text in word.warns:
                warning = f"Warning: {word.text}: {text}"
                yield Line(warning, indent=4, style=Style.WARNING)


def _describe_file(file: FileChange) -> Iterator[Line]:
    was = f" (was {file.was})" if file.was else ""
    marks = f" [{', '.join(file.marks)}]" if file.marks else ""
    yield Line(f"{file.path}{was}{marks}", indent=2)
    yield from _list_rows(file.facts, indent=4)
    signs = {"removed": ("-", Style.REMOVED), "added": ("+", Style.ADDED)}
    for hunk in file.hunks:
        yield Line(hunk.title, indent=4, style=Style.FAINT)
        for line in hunk.lines:
            sign, style = signs.get(line.kind, (" ", Style.PLAIN))
            yield Line(f"{sign} {line.text}", indent=4, style=style)


def _describe_rows(heading: str, rows: Iterable[Row]) -> Iterator[Line]:
    rows = tuple(rows)
    if rows:
        yield from _open_section(heading)
        yield from _list_rows(rows)


def _list_rows(rows: Iterable[Row], indent: int = 2) -> Iterator[Line]:
    for row in rows:
        value = row.cell.text or row.cell.kind
        notes = [text for text in (row.note, row.also) if text]
        note = f" ({'; '.join(notes)})" if notes else ""
        if "\n" in value:
            yield Line(f"{row.label}{note}:", indent=indent)
            for text in value.split("\n"):
                yield Line(text, indent=indent + 2, quoted=True)
        else:
            yield Line(f"{row.label}: {value}{note}", indent=indent)
        for text in row.warns:
            warning = f"Warning: {text}"
            yield Line(warning, indent=indent + 2, style=Style.WARNING)


def _describe_arguments(request: RequestDetail) -> Iterator[Line]:
    """The arguments as JSON, in which every character of a text is exact."""
    yield from _open_section(f"Exact arguments of {request.tool}")
    for name, value in request.args.items():
        yield Line(f"{name}: {json.dumps(value, ensure_ascii=False)}", indent=2)


def _describe_dry_run(dry_run: DryRun | None) -> Iterator[Line]:
    if dry_run is None:
        return
    yield from _open_section(f"Dry run by {dry_run.source or 'the tool'}")
    if dry_run.problem:
        yield Line(f"Warning: {dry_run.problem}", indent=2, style=Style.WARNING)
    yield from _list_rows(dry_run.rows)


def _describe_reversal(reversal: Reversal) -> Iterator[Line]:
    named = {
        "To undo it": reversal.undo,
        "What stays": reversal.stays,
        "To check it": reversal.check,
    }
    texts = [f"{name}: {text}" for name, text in named.items() if text]
    if reversal.word or texts:
        yield from _open_section(reversal.word or "Reversal")
        yield from (Line(text, indent=2) for text in texts)


def _describe_rules(request: RequestDetail) -> Iterator[Line]:
    if request.rules:
        yield from _open_section("Why people are asked")
    for rule in request.rules:
        yield Line(rule.text or rule.id, indent=2)


def _describe_words(request: RequestDetail) -> Iterator[Line]:
    texts = [("Why", request.rationale)]
    texts += [(claim.heading, claim.text) for claim in request.claims]
    texts = [(heading, text) for heading, text in texts if text]
    if not texts:
        return
    written = f"; written for {request.written_for}" if request.written_for else ""
    yield from _open_section(f"The agent's own words, not checked{written}")
    for heading, text in texts:
        yield Line(heading, indent=2)
        yield from _quote_text(text, indent=2)


def _describe_evidence(evidence: Iterable[Evidence]) -> Iterator[Line]:
    for number, item in enumerate(evidence, 1):
        if number == 1:
            yield from _open_section("Evidence from outside, not checked")
        source = ", ".join(
            text for text in (item.kind, item.source, format_moment(item.at)) if text
        )
        yield Line(f"{number}. {source}", indent=2, quoted=True)
        if item.withheld:
            yield Line(f"Withheld: {item.withheld}", indent=2)
        yield from _quote_text(item.text, indent=2)
        if item.note:
            yield Line(item.note, indent=2)
        if item.file:
            yield from _describe_attachment(item.file)


def _describe_attachment(file: EvidenceFile) -> Iterator[Line]:
    about = f"{file.name} ({file.media_type}, {file.size:,} bytes, {file.sha256[:19]})"
    yield Line(about, indent=2, quoted=True)
    for note in filter(None, (file.why_not, *file.notes)):
        yield Line(note, indent=2)
    if file.table:
        rows = (file.table.columns, *file.table.rows)
        yield from _quote_text("\n".join(" | ".join(row) for row in rows), indent=2)
    elif not file.why_not:
        yield Line("See its pictures on the page.", indent=2)


def _quote_text(text: str, indent: int) -> Iterator[Line]:
    """A text behind a bar. A long one is cut, so that it cannot push what a person
    decides on out of sight."""
    shown = "\n".join(text[:MOST_CHARACTERS].split("\n")[:MOST_LINES])
    for line in shown.split("\n") if text else []:
        yield Line(line, indent=indent, quoted=True)
    if left := len(text) - len(shown):
        more = f"{left} more characters: see the page."
        yield Line(more, indent=indent, style=Style.WARNING)


def _open_section(heading: str) -> Iterator[Line]:
    yield Line()
    yield Line(heading, style=Style.STRONG)
