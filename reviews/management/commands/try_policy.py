"""`counterseal policy try FILE --calls calls.jsonl`: print what a policy would do with
each call of a file, without proposing anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from journal import clock
from journal.errors import DomainError
from policies import callables
from policies.documents import Document, parse_document
from policies.management import lookups
from reviews.governance import simulation
from reviews.governance.simulation import SimulationResult

HEADS = ("line", "tool", "tier", "rules", "title")


class Command(BaseCommand):
    help = (
        "Shows what the policy in FILE would do with each call of another file, which"
        " has one JSON object per line: tier, rules and title. Proposes and writes"
        " nothing and calls no reader. Exits with 1 if a line is not a valid call."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--calls", type=Path, required=True)
        parser.add_argument(
            "--at",
            metavar="TIME",
            help="the time of the calls, such as 2026-11-24T10:00:00+00:00; by default"
            " the database's time",
        )
        parser.add_argument(
            "--json", action="store_true", help="print one JSON object per line"
        )
        parser.add_argument(
            "--set", action="append", default=[], metavar="NAME=VALUE", dest="variables"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        document = _read_document(options["file"], options["variables"])
        lines = _read_file(options["calls"]).splitlines()
        results = list(
            simulation.simulate_calls(document, lines, now=_parse_time(options["at"]))
        )
        printed = (
            simulation.format_lines(results)
            if options["json"]
            else _format_table(results)
        )
        for line in printed:
            self.stdout.write(line)
        if wrong := sum(bool(result.problem) for result in results):
            raise CommandError(f"{wrong} of {len(results)} lines are not valid calls.")


def _parse_time(text: str | None) -> datetime:
    if text is None:
        return clock.now()
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise CommandError(f"--at: {error}") from error
    if at.tzinfo is None:
        raise CommandError("--at has no time zone: write 2026-11-24T10:00:00+00:00")
    if not clock.is_usable(at):
        raise CommandError(f"--at: the year {clock.YEARS_RULE}")
    return at


def _read_document(file: Path, variables: Sequence[str]) -> Document:
    values = dict(pair.split("=", 1) for pair in variables if "=" in pair)
    try:
        return parse_document(
            _read_file(file), variables=values, further=callables.list_problems
        )
    except DomainError as error:
        raise lookups.to_command_error(error) from error


def _read_file(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise CommandError(f"{file} cannot be read: {error}") from error


def _format_table(results: Iterable[SimulationResult]) -> Iterable[str]:
    rows = [HEADS, *(_format_row(result) for result in results)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(HEADS) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join([*cells, row[-1]]).rstrip()


def _format_row(result: SimulationResult) -> tuple[str, ...]:
    tier = "error" if result.problem else result.tier
    cells = (result.tool, tier, ",".join(result.rules), result.problem or result.title)
    return (str(result.line), *map(_to_printable, cells))


def _to_printable(text: str) -> str:
    """Replace unprintable characters, so that a call cannot control the terminal."""
    return "".join(
        character if character.isprintable() else "\ufffd" for character in text
    )
