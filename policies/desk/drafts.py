"""Writing a policy version on a page, and comparing a draft with the active version."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NotRequired

from journal.errors import DomainError, FieldError, NotFound
from policies import active, versions
from policies.documents import InvalidPolicy
from policies.documents.source import write_source
from policies.models import Person, PolicyVersion
from policies.people import check_administrator

_CONTEXT = 3  # unchanged lines around a change
_NOT_ACTIVATED = "Nothing was activated. Save a corrected text as a new version:"


class DraftError(FieldError):
    """One problem in a text, with the line of it where that is known."""

    source: NotRequired[str]


@dataclass(frozen=True, slots=True)
class DraftForm:
    """The form of a new version. `base` is the number of the version that its text
    comes from, None where there was none. `problem` and `errors` say why the text was
    not saved."""

    text: str
    base: int | None
    problem: str = ""
    errors: Sequence[DraftError] = ()


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One line of a difference between the texts of two versions, as the tag `lines`
    draws it."""

    kind: str
    text: str
    old: int | None = None
    new: int | None = None
    speaks: bool = False

    @property
    def parts(self) -> tuple[tuple[bool, str], ...]:
        return ((False, self.text),)


@dataclass(frozen=True, slots=True)
class Activation:
    """What the page of a draft offers to an administrator. `hunks` are the differences
    from the active version `base`; `by_author`: this person wrote the draft, so another
    one must activate it."""

    base: int | None
    hunks: list[list[SourceLine]]
    by_author: bool
    problem: str = ""
    errors: Sequence[FieldError] = ()


def build_draft_form(person: Person, base: int | None) -> DraftForm:
    """The form with the text of version `base`, by default of the active one, else of
    the newest. Raises NotPermitted for anyone but an administrator, and NotFound."""
    check_administrator(person)
    found = _find_base(base)
    if found is None:
        return DraftForm("", None)
    return DraftForm(write_source(found.document), found.number)


def _find_base(number: int | None) -> PolicyVersion | None:
    rows = PolicyVersion.objects.order_by("-number")
    if number is None:
        return active.find_active_policy() or rows.first()
    found = rows.filter(number=number).first()
    if found is None:
        raise NotFound
    return found


def save_draft(
    person: Person, text: str, base: int | None
) -> PolicyVersion | DraftForm:
    """Save the text as the next version. Returns the form with the reasons when it is
    refused. Raises NotPermitted."""
    check_administrator(person)
    try:
        return versions.save_draft(text_or_mapping=text, author=person)
    except DomainError as error:
        problem = _describe(error, "Nothing was saved. Correct the text:")
        return DraftForm(text, base, problem, _quote_lines(error.errors, text))


def _quote_lines(errors: Sequence[FieldError], text: str) -> list[DraftError]:
    """The errors, each with the line of the text that it names."""
    lines = text.splitlines()
    found = [DraftError(path=one["path"], message=one["message"]) for one in errors]
    for quoted, one in zip(found, errors, strict=True):
        if 0 < one.get("line", 0) <= len(lines):
            quoted["line"] = one["line"]
            quoted["source"] = lines[one["line"] - 1].strip()
    return found


def _describe(error: DomainError, title: str) -> str:
    """What happened, for a page that lists the errors below it: `title` in place of the
    sentence that programs get about a faulty document."""
    if error.errors and error.detail == InvalidPolicy().detail:
        return title
    return error.detail


def build_activation(
    person: Person, version: PolicyVersion, refusal: DomainError | None = None
) -> Activation:
    """What an administrator is offered for a draft."""
    current = active.find_active_policy()
    before = write_source(current.document) if current else ""
    return Activation(
        base=current.number if current else None,
        hunks=list(_list_hunks(before, write_source(version.document))),
        by_author=version.author_id == person.pk,
        problem=_describe(refusal, _NOT_ACTIVATED) if refusal else "",
        errors=list(refusal.errors) if refusal else (),
    )


def _list_hunks(before: str, after: str) -> Iterator[list[SourceLine]]:
    old, new = before.splitlines(), after.splitlines()
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        yield [line for code in group for line in _list_lines(old, new, code)]


def _list_lines(
    old: Sequence[str], new: Sequence[str], code: tuple[str, int, int, int, int]
) -> Iterator[SourceLine]:
    tag, old_from, old_to, new_from, new_to = code
    if tag == "equal":
        for at in range(old_to - old_from):
            text = old[old_from + at]
            yield SourceLine("same", text, old_from + at + 1, new_from + at + 1)
        return
    for at in range(old_from, old_to):
        yield SourceLine("removed", old[at], old=at + 1)
    for at in range(new_from, new_to):
        yield SourceLine("added", new[at], new=at + 1)
