"""What is deployed where: range, checks, irreversible steps first. Pure.

The state of the checks comes from the tool's reader (`checks`: name -> state), never
from the agent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from . import paths
from .arguments import format_count
from .common import Subject, add_row_warnings, build_loud_tags, build_presentation
from .shapes import Cell, Presentation, SizeFigure, Tag, ValueRow
from .views import GroupView

_PRODUCTION = re.compile(r"\b(prod|production|live|prd)\b|^(main|master)$")
_GREEN = {"success", "passed", "pass", "green", "ok", "neutral", "skipped"}
_DROPS = re.compile(r"\b(drop|truncate|delete|rename|remove)", re.IGNORECASE)
_ONE_WAY = re.compile(r"\b(drop|truncate|delete|rename|remove|alter|backfill|encrypt)")
_TRUE = {"yes", "true", "1", "force"}
# Names of arguments whose number is a percentage.
_PERCENTAGES = {"percent", "percentage", "pct"}


def show(subject: Subject) -> Presentation:
    """Present the irreversible steps, then what is deployed, where and how far."""
    steps = add_row_warnings(subject.listed("migrations"), _list_step_warnings)
    steps.sort(key=lambda row: not row.warns)
    what = subject.listed("repository", "base", "head", "branch")
    where = subject.listed("environment", "traffic", "rollback", "force")
    return build_presentation(
        subject,
        *_build_deploy_tags(subject),
        size=tuple(_build_size_figures(subject)),
        views=[
            GroupView("Irreversible steps first", tuple(steps)),
            GroupView("What goes live", (*what, *where)),
            GroupView("Checks, as read", tuple(_build_check_rows(subject))),
        ],
        used=("checks",),
    )


def _build_deploy_tags(subject: Subject) -> Iterator[Tag]:
    steps = subject.words("migrations")
    forced = _TRUE & set(subject.words("force"))
    places = subject.words("environment", "branch")
    secrets = [t for t in subject.words("head", "migrations") if "secret" in t]
    yield from build_loud_tags(
        (any(map(_DROPS.search, steps)), "Permanently drops something"),
        (forced, "Forced: history is overwritten"),
        (any(map(_PRODUCTION.search, places)), "Production"),
        (secrets or _touches_secrets(subject), "Touches secrets"),
    )
    yield from _build_check_tags(subject)
    if not subject.path("rollback"):
        yield Tag("No rollback is named")


def _build_check_tags(subject: Subject) -> Iterator[Tag]:
    checks = subject.read("checks")
    if not isinstance(checks, Mapping) or not checks:
        yield Tag("Check results unknown", loud=True)
        return
    if red := sum(not _is_green(state) for state in checks.values()):
        yield Tag(f"{format_count(red, 'check')} not passing", loud=True)


def _build_check_rows(subject: Subject) -> Iterator[ValueRow]:
    checks = subject.read("checks")
    states = checks.items() if isinstance(checks, Mapping) else ()
    for name, state in sorted(states, key=lambda pair: _is_green(pair[1])):
        warns = () if _is_green(state) else ("Not passing",)
        yield ValueRow(str(name), f"read.checks.{name}", Cell(str(state)), warns=warns)


def _touches_secrets(subject: Subject) -> bool:
    files = subject.read("files")
    names = files if isinstance(files, list) else []
    return any("Secret" in paths.list_path_marks(str(name), "/") for name in names)


def _list_step_warnings(text: str) -> Iterator[str]:
    if _ONE_WAY.search(text.casefold()):
        yield "Cannot be rolled back"


def _is_green(state: object) -> bool:
    return str(state).casefold() in _GREEN


def _build_size_figures(subject: Subject) -> Iterator[SizeFigure]:
    base, head = subject.text("base"), subject.text("head")
    if head:
        yield SizeFigure(
            "What", f"{base}..{head}" if base else head, "", untrusted=True
        )
    for role, label in (("environment", "Where"), ("traffic", "Share")):
        if shown := subject.listed(role):
            sign = "%" if subject.path(role).casefold() in _PERCENTAGES else ""
            yield SizeFigure(label, shown[0].cell.text + sign, "", untrusted=True)
