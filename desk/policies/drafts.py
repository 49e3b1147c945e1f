"""Writing a policy version on a page, and comparing a draft with the active version."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NotRequired

from django import forms
from django.http import HttpRequest

from journal.errors import (
    DomainError,
    FieldError,
    InvalidInput,
    NotFound,
    StaleVersion,
    build_field_error,
)
from policies import active, changes, versions
from policies.changes import PolicyChange
from policies.documents import InvalidPolicy
from policies.documents.source import write_source
from policies.models import Person, PolicyVersion
from policies.people import check_administrator, confirm_password
from policies.versions import ShownVersions

_BASE = re.compile(r"[0-9]{1,9}")
_CONTEXT = 3  # unchanged lines around a change
_NOT_ACTIVATED = "Nothing was activated. Save a corrected text as a new version:"


class DraftError(FieldError):
    """One problem in a text, with the line of it where that is known."""

    source: NotRequired[str]


@dataclass(frozen=True, slots=True)
class VersionForm:
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
    from the active version `base`, and `changes` say which of them ask for less;
    `by_author`: this person wrote the draft, so another one must activate it. `shown`
    is what the form sends back, so that nothing else is activated. `moved` are the
    differences between the version that was active when the person opened the page and
    the one that is active now."""

    base: int | None
    hunks: list[list[SourceLine]]
    by_author: bool
    shown: ShownVersions
    changes: Sequence[PolicyChange] = ()
    moved: Sequence[list[SourceLine]] = ()
    problem: str = ""
    problem_code: str = ""
    errors: Sequence[FieldError] = ()
    reason: str = ""

    @property
    def laxer(self) -> list[str]:
        """The sentences of what asks for less, or may."""
        return changes.list_laxer(self.changes)

    @property
    def others(self) -> list[str]:
        laxer = set(self.laxer)
        return [change.text for change in self.changes if change.text not in laxer]


class ActivationForm(forms.Form):
    """What an administrator read, and why they activate it."""

    digest = forms.CharField(max_length=80)
    base = forms.IntegerField(min_value=0)
    base_digest = forms.CharField(max_length=80, required=False)
    reason = forms.CharField(
        max_length=2000,
        error_messages={"required": "Enter why this version is activated."},
    )
    password = forms.CharField(
        max_length=1024,
        strip=False,
        error_messages={"required": "Enter your password."},
    )


def build_version_form(person: Person, base: int | None) -> VersionForm:
    """The form with the text of version `base`, by default of the active one, else of
    the newest. Raises NotPermitted for anyone but an administrator, and NotFound."""
    check_administrator(person)
    version = _find_base(base)
    if version is None:
        return VersionForm("", None)
    return VersionForm(write_source(version.document), version.number)


def _find_base(number: int | None) -> PolicyVersion | None:
    rows = PolicyVersion.objects.order_by("-number")
    if number is None:
        return active.find_active_policy() or rows.first()
    version = rows.filter(number=number).first()
    if version is None:
        raise NotFound
    return version


def save_draft(
    person: Person, text: str, base: int | None
) -> PolicyVersion | VersionForm:
    """Save the text as the next version. Returns the form with the reasons when it is
    refused. Raises NotPermitted."""
    check_administrator(person)
    try:
        return versions.save_draft(text_or_mapping=text, author=person)
    except DomainError as error:
        problem = _describe(error, "Nothing was saved. Correct the text:")
        return VersionForm(text, base, problem, _quote_lines(error.errors, text))


def _quote_lines(errors: Sequence[FieldError], text: str) -> list[DraftError]:
    lines = text.splitlines()
    quotes = [
        DraftError(path=error["path"], message=error["message"]) for error in errors
    ]
    for quoted, error in zip(quotes, errors, strict=True):
        if 0 < error.get("line", 0) <= len(lines):
            quoted["line"] = error["line"]
            quoted["source"] = lines[error["line"] - 1].strip()
    return quotes


def _describe(error: DomainError, title: str) -> str:
    """What happened, for a page that lists the errors below it: `title` in place of the
    sentence that programs get about a faulty document."""
    if error.errors and error.detail == InvalidPolicy().detail:
        return title
    return error.detail


def activate(http: HttpRequest, person: Person, version: PolicyVersion) -> None:
    """Activate the draft that the form shows. Raises what `versions.activate_version`
    raises, InvalidInput for a form without reason, password or what was shown, and
    ReauthenticationRequired for a wrong password."""
    check_administrator(person)
    if version.author_id == person.pk:
        versions.activate_version(version_id=version.pk, by=person)  # refuses it
    form = ActivationForm(http.POST)
    if not form.is_valid():
        errors = [
            build_field_error(name, str(form.errors[name][0])) for name in form.errors
        ]
        raise InvalidInput("Nothing was activated. Complete the form:", errors=errors)
    sent = form.cleaned_data
    confirm_password(http, person, sent["password"])
    shown = ShownVersions(sent["digest"], sent["base"], sent["base_digest"])
    versions.activate_version(
        version_id=version.pk, by=person, reason=sent["reason"], shown=shown
    )


def build_activation(
    person: Person,
    version: PolicyVersion,
    refusal: DomainError | None = None,
    sent: Mapping[str, str] = {},
) -> Activation:
    """What an administrator is offered for a draft. `sent` is the form that was
    refused."""
    current = active.find_active_policy()
    before = write_source(current.document) if current else ""
    differences: Sequence[PolicyChange] = ()
    if current is not None:
        documents = active.load_document(current), active.load_document(version)
        differences = changes.list_changes(*documents)
    return Activation(
        base=current.number if current else None,
        hunks=list(_list_hunks(before, write_source(version.document))),
        by_author=version.author_id == person.pk,
        shown=versions.build_shown_versions(version),
        changes=differences,
        moved=_list_moved(sent.get("base", ""), before, refusal),
        problem=_describe(refusal, _NOT_ACTIVATED) if refusal else "",
        problem_code=refusal.code if refusal else "",
        errors=list(refusal.errors) if refusal else (),
        reason=sent.get("reason", ""),
    )


def _list_moved(
    base: str, now: str, refusal: DomainError | None
) -> Sequence[list[SourceLine]]:
    """The differences between the version that was active when the page was made and
    the text of the active one."""
    if not isinstance(refusal, StaleVersion) or not _BASE.fullmatch(base):
        return ()
    then = PolicyVersion.objects.filter(number=int(base)).first()
    return list(_list_hunks(write_source(then.document) if then else "", now))


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
