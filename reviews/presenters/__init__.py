"""Build what a reviewer is shown of an effect, from the exact arguments
(docs/invariants.md I31).

Each kind of tool has a module here; the effect of any other tool is shown as a table of
its arguments. All values are plain text, which the template tags of `inert` escape.
Pure: no database, no network.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from policies.documents import ToolDefinition

from . import (
    access,
    common,
    config,
    deploy,
    email,
    file,
    money,
    publish,
    record,
    request,
    schedule,
    shell,
)
from .arguments import HIDDEN, Conceal, sort_by_schema
from .common import Subject
from .shapes import FieldChange, Presentation, Tag, TextPart, collect_texts

__all__ = [
    "Presentation",
    "build_argument_subject",
    "build_removed_presentation",
    "build_unreadable_presentation",
    "collect_texts",
    "compare_versions",
    "present_effect",
]


def _show_statement(subject: Subject) -> Presentation:
    # sqlglot is 11 MB of each process, and many a gate has no tool of this kind.
    from . import sql

    return sql.show(subject)


_PRESENTERS: dict[str, Callable[[Subject], Presentation]] = {
    "access": access.show,
    "config": config.show,
    "deletion": record.show_deletion,
    "deploy": deploy.show,
    "email": email.show,
    "file": file.show,
    "http": request.show,
    "message": email.show,
    "money": money.show,
    "publish": publish.show,
    "record": record.show,
    "schedule": schedule.show,
    "shell": shell.show,
    "sql": _show_statement,
}


def present_effect(
    definition: ToolDefinition,
    args: Mapping[str, Any],
    *,
    before: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    facts: Mapping[str, Any] | None = None,
    conceal: Conceal = lambda _: HIDDEN,
    dry_run: Mapping[str, Any] | None = None,
    at: datetime | None = None,
    windows: Mapping[str, timedelta] | None = None,
    domains: Collection[str] = (),
) -> Presentation:
    """Build the presentation of one effect; the parameters are the fields of `Subject`.
    `before` and `labels` come from the tool's reader, through its stored reading.
    `conceal` should be keyed, so that people can recognise equal values without reading
    them."""
    args = sort_by_schema(args, definition.arguments)
    subject = Subject(
        definition,
        args,
        before,
        labels or {},
        facts or {},
        conceal,
        dry_run,
        at,
        windows or {},
        domains,
    )
    return _PRESENTERS.get(definition.presenter, common.show)(subject)


def build_unreadable_presentation(title: str) -> Presentation:
    """The presentation of an effect that cannot be presented: it shows nothing of it,
    and says so."""
    return Presentation(
        title=title,
        sentence=(TextPart("This effect cannot be read"),),
        tags=(Tag("Cannot be read", loud=True),),
        reversal=common.UNKNOWN_REVERSIBILITY,
        before_known=False,
        unreadable=True,
    )


def build_removed_presentation(title: str, removal: str) -> Presentation:
    """The presentation of an effect whose arguments were removed, in the words of
    `removal`."""
    return replace(
        build_unreadable_presentation(title),
        sentence=(TextPart(f"{title}: "), TextPart(removal.removesuffix("."))),
        tags=(Tag("Removed by the retention rule"),),
    )


def build_argument_subject(
    definition: ToolDefinition,
    args: Mapping[str, Any],
    older: Mapping[str, Any],
    *,
    labels: Mapping[str, str] | None = None,
    conceal: Conceal = lambda _: HIDDEN,
) -> Subject:
    """Build the subject that compares arguments with older ones of the same tool. It
    conceals what the presenter of the tool's kind conceals, in both."""
    now, was = (
        Subject(
            definition,
            sort_by_schema(version, definition.arguments),
            labels=labels or {},
            conceal=conceal,
        )
        for version in (args, older)
    )
    secret: frozenset[str] = frozenset()
    if definition.presenter == "http":
        secret = request.list_secret_paths(now) | request.list_secret_paths(was)
    return replace(now, before=was.args, secret=secret)


def compare_versions(subject: Subject) -> list[FieldChange]:
    """List every difference of the arguments of a subject from `build_argument_subject`
    from the older ones, destructive ones first. An amount of money comes with its
    currency."""
    before = replace(subject, args=subject.before or {})
    return [
        replace(
            change,
            before=before.add_currency(change.path, change.before),
            after=subject.add_currency(change.path, change.after),
        )
        for change in subject.comparison.differences(subject.args, before.args)
    ]
