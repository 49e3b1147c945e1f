"""A draft on its page: compared with the active version, and activated."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from django import forms
from django.http import HttpRequest

from journal.errors import (
    DomainError,
    FieldError,
    InvalidInput,
    StaleVersion,
    build_field_error,
)
from policies import active, bands, comparison, method_covers, versions
from policies.changes import PolicyChange
from policies.documents import Document
from policies.documents.source import write_source
from policies.method_covers import MethodCover
from policies.models import Person, PolicyVersion
from policies.people import check_administrator
from policies.versions import ShownVersions

from ..people.forms import PasswordCheckedForm
from . import undeclared
from .editing import SourceLine, describe_refusal
from .undeclared import Caller
from .waiting import WaitingRows, build_waiting_rows

_BASE = re.compile(r"[0-9]{1,9}")
_CONTEXT = 3  # unchanged lines around a change
_NOT_ACTIVATED = "Nothing was activated. Save a corrected text as a new version:"


@dataclass(frozen=True, slots=True)
class Activation:
    """What the page of a draft offers to an administrator. `hunks` are the differences
    from the active version `base`, and `changes` say which of them ask for less;
    `by_author`: this person wrote the draft, so another one must activate it. `shown`
    is what the form sends back, so that nothing else is activated. `moved` are the
    differences between the version that was active when the person opened the page and
    the one that is active now. `callers` are agents that called a tool which this
    draft declares first, and that may not propose it yet."""

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
    callers: Sequence[Caller] = ()
    waiting: WaitingRows | None = None
    covers: Sequence[CoverLine] = ()
    refusal_problem: str = ""
    refusal_reason: str = ""

    @property
    def groups(self) -> list[comparison.ChangeGroup]:
        """The changes by direction, what asks for less first."""
        return comparison.group_changes(self.changes)


class CoverLine(NamedTuple):
    """How many people of a queue have what the draft takes as a step-up, and who lacks
    it."""

    cover: MethodCover
    queue: str
    needs: str
    lacking: Sequence[Person]


class ActivationForm(PasswordCheckedForm):
    """What an administrator read, and why they activate it."""

    digest = forms.CharField(max_length=80)
    base = forms.IntegerField(min_value=0)
    base_digest = forms.CharField(max_length=80, required=False)
    reason = forms.CharField(
        max_length=2000,
        error_messages={"required": "Enter why this version is activated."},
    )


def activate(http: HttpRequest, person: Person, version: PolicyVersion) -> None:
    """Activate the draft that the form shows. Raises what `versions.activate_version`
    raises, InvalidInput for a form without reason, password or what was shown, and what
    the form's `confirm` raises."""
    check_administrator(person)
    if versions.is_own_draft(version, person):
        versions.activate_version(version_id=version.pk, by=person)  # refuses it
    form = ActivationForm(http.POST)
    if not form.is_valid():
        errors = [
            build_field_error(name, str(form.errors[name][0])) for name in form.errors
        ]
        raise InvalidInput("Nothing was activated. Complete the form:", errors=errors)
    sent = form.cleaned_data
    form.confirm(http)
    shown = ShownVersions(sent["digest"], sent["base"], sent["base_digest"])
    callers = undeclared.list_callers(person, version, http.POST.getlist("allow"))
    versions.activate_version(
        version_id=version.pk, by=person, reason=sent["reason"], shown=shown
    )
    undeclared.allow_callers(person, callers)


def build_activation(
    person: Person,
    version: PolicyVersion,
    refusal: DomainError | None = None,
    sent: Mapping[str, str] = {},
    allowed: Sequence[str] = (),
) -> Activation:
    """What an administrator is offered for a draft. `sent` is the form that was
    refused, with the callers that it allowed."""
    current = active.find_active_policy()
    before = write_source(current.document) if current else ""
    differences: Sequence[PolicyChange] = ()
    if current is not None:
        documents = active.load_document(current), active.load_document(version)
        differences = comparison.compare_policies(*documents)
    return Activation(
        base=current.number if current else None,
        hunks=list(_list_hunks(before, write_source(version.document))),
        by_author=versions.is_own_draft(version, person),
        shown=versions.build_shown_versions(version),
        changes=differences,
        moved=_list_moved(sent.get("base", ""), before, refusal),
        problem=describe_refusal(refusal, _NOT_ACTIVATED) if refusal else "",
        problem_code=refusal.code if refusal else "",
        errors=list(refusal.errors) if refusal else (),
        reason=sent.get("reason", ""),
        callers=undeclared.list_callers(person, version, allowed if sent else None),
        waiting=build_waiting_rows(version),
        covers=_list_covers(active.load_document(version)),
    )


def _list_covers(document: Document) -> list[CoverLine]:
    covers = method_covers.list_covers(document)
    people = Person.objects.in_bulk({pk for cover in covers for pk in cover.lacking})
    return [
        CoverLine(
            cover,
            document.queues[cover.queue],
            f"{bands.describe_steps(cover.steps)} with {cover.noun}",
            sorted((people[pk] for pk in cover.lacking if pk in people), key=str),
        )
        for cover in covers
    ]


def add_refusal(
    activation: Activation, error: DomainError, sent: Mapping[str, str]
) -> Activation:
    """The page of a draft of which the refusal failed, with the reason as typed."""
    problem = error.errors[0]["message"] if error.errors else error.detail
    return replace(
        activation, refusal_problem=problem, refusal_reason=sent.get("reason", "")
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
