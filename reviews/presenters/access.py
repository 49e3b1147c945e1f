"""Who gets which right on which resource, and until when. Pure.

The resulting rights are what the tool's reader declares: `effective` is what the person
may do now, `effective_after` what they could do afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .common import Subject, add_row_warnings, build_loud_tags, build_presentation
from .shapes import Presentation, Tag, ValueRow
from .views import GroupView

_WIDE = re.compile(r"(^|[\s:./,\"])\*|\ball\b|\bany\b|^\*$|\.\*")
_ADMIN = re.compile(
    r"admin|owner|\broot\b|superuser|full[_\s.-]?access|poweruser|sysadmin|wheel"
    r"|iam\.|setiampolicy|\bwrite[_-]all\b|cluster-admin|god\b"
)
_PUBLIC = re.compile(
    r"allusers|allauthenticatedusers|everyone|anonymous|public\b|world"
)
_TAKES = re.compile(r"revoke|remove|deny|delete|unassign|withdraw")
_NEVER = re.compile(r"never|none|permanent|forever|unlimited|^0$|^-1$")


def show(subject: Subject) -> Presentation:
    """Present who gets what, on what and until when; then the resulting rights."""
    takes = _TAKES.search(_describe_action(subject)) is not None
    rows = subject.listed("action")
    rows += add_row_warnings(subject.listed("who"), _list_who_warnings)
    rows += add_row_warnings(subject.listed("what"), _list_right_warnings)
    rows += add_row_warnings(subject.listed("resource"), _list_wildcard_warnings)
    rows += subject.listed("until")
    tags = [Tag("Removes access", loud=True)] if takes else _build_access_tags(subject)
    return build_presentation(
        subject,
        *tags,
        views=[
            GroupView("Access changes", tuple(rows)),
            *_build_effective_groups(subject),
        ],
        used=("effective", "effective_after"),
    )


def _describe_action(subject: Subject) -> str:
    """What the call does: the argument that says so, else the policy's name for the
    tool."""
    definition = subject.definition
    named = f"{definition.name} {definition.title}".casefold()
    return " ".join(subject.words("action")) if subject.path("action") else named


def _build_access_tags(subject: Subject) -> list[Tag]:
    what, who = subject.words("what"), subject.words("who")
    until = subject.words("until")
    agent = str((subject.facts.get("agent") or {}).get("name", "")).casefold()
    return build_loud_tags(
        (any(map(_ADMIN.search, what)), "Gives administrator rights"),
        (any(map(_WIDE.search, [*what, *subject.words("resource")])), "Has a wildcard"),
        (any(map(_PUBLIC.search, who)), "Gives everyone access"),
        (agent and agent in who, "The agent gives itself access"),
        (not until or any(map(_NEVER.search, until)), "Never expires"),
    )


def _list_who_warnings(text: str) -> Iterator[str]:
    if _PUBLIC.search(text.casefold()) or text == "*":
        yield "Everyone"


def _list_right_warnings(text: str) -> Iterator[str]:
    if _ADMIN.search(text.casefold()):
        yield "Administrator"
    yield from _list_wildcard_warnings(text)


def _list_wildcard_warnings(text: str) -> Iterator[str]:
    if _WIDE.search(text.casefold()):
        yield "Wildcard"


def _build_effective_groups(subject: Subject) -> Iterator[GroupView]:
    """The resulting rights, as the tool computed them: what is gained and what is
    lost."""
    before, after = subject.read("effective"), subject.read("effective_after")
    if not isinstance(before, list) or not isinstance(after, list):
        return
    rights = subject.comparison.rows({"effective": after}, {"effective": before})
    rows = [
        ValueRow(
            "Gets" if change.after else "Loses",
            f"read.{change.path}.{number}",
            change.after or change.before or subject.cell(subject.leaves[0]),
        )
        for number, change in enumerate(rights.changes)
    ]
    note = f"{len(rights.unchanged)} unchanged"
    yield GroupView("Resulting access, as declared by the tool", tuple(rows), note)
