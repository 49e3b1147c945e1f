"""Who gets which right on which resource, and until when. Pure.

The resulting rights are what the tool's reader declares: `effective` is what the person
may do now, `effective_after` what they could do afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .common import Subject, present, tagged, warned
from .shapes import Presentation, Row, Tag
from .views import Group

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
    takes = _TAKES.search(_action(subject)) is not None
    rows = subject.listed("action")
    rows += warned(subject.listed("who"), _of_who)
    rows += warned(subject.listed("what"), _of_what)
    rows += warned(subject.listed("resource"), _of_resource)
    rows += subject.listed("until")
    views = [Group("Who gets what", tuple(rows)), *_effective(subject)]
    tags = [Tag("Takes access away", loud=True)] if takes else _tags(subject)
    return present(
        subject,
        *tags,
        views=[view for view in views if view.rows],
        used=("effective", "effective_after"),
    )


def _action(subject: Subject) -> str:
    """What the call does: the argument that says so, else the policy's name for the
    tool."""
    definition = subject.definition
    named = f"{definition.name} {definition.title}".casefold()
    return " ".join(subject.words("action")) if subject.path("action") else named


def _tags(subject: Subject) -> list[Tag]:
    what, who = subject.words("what"), subject.words("who")
    until = subject.words("until")
    agent = str((subject.facts.get("agent") or {}).get("name", "")).casefold()
    return tagged(
        (any(map(_ADMIN.search, what)), "Gives administrator rights"),
        (any(map(_WIDE.search, [*what, *subject.words("resource")])), "Has a wildcard"),
        (any(map(_PUBLIC.search, who)), "Gives access to everybody"),
        (agent and agent in who, "The agent gives itself access"),
        (not until or any(map(_NEVER.search, until)), "Never expires"),
    )


def _of_who(text: str) -> Iterator[str]:
    if _PUBLIC.search(text.casefold()) or text == "*":
        yield "Everybody"


def _of_what(text: str) -> Iterator[str]:
    if _ADMIN.search(text.casefold()):
        yield "Administrator"
    if _WIDE.search(text.casefold()):
        yield "Wildcard"


def _of_resource(text: str) -> Iterator[str]:
    if _WIDE.search(text.casefold()):
        yield "Wildcard"


def _effective(subject: Subject) -> Iterator[Group]:
    """The resulting rights, as the tool computed them: what is gained and what is
    lost."""
    before, after = subject.read("effective"), subject.read("effective_after")
    if not isinstance(before, list) or not isinstance(after, list):
        return
    found = subject.comparison.rows({"effective": after}, {"effective": before})
    rows = [
        Row(
            "Gets" if change.after else "Loses",
            f"read.{change.path}.{number}",
            change.after or change.before or subject.cell(subject.leaves[0]),
        )
        for number, change in enumerate(found.changes)
    ]
    note = f"{len(found.unchanged)} as before"
    yield Group("What they may do in the end, as the tool declared", tuple(rows), note)
