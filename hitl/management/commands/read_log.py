"""`counterseal log`: the audit log in a terminal."""

from __future__ import annotations

import contextlib
from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from desk.log import terminal
from desk.log.filters import KINDS, LogFilters
from journal.models import LogRecord

MOST = 50
MOST_ASKED = 10_000


class Command(BaseCommand):
    help = (
        "Prints the newest records of the audit log, as an auditor reads them, the"
        " oldest of them first. Times are in UTC. It changes nothing. `counterseal log"
        " verify` checks the whole log."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--search",
            default="",
            metavar="WORDS",
            help="words, people, runs or ids, as in the search box of the page",
        )
        parser.add_argument(
            "--request", default="", metavar="ID", help="a request or a proposal"
        )
        parser.add_argument("--actor", default="", metavar="NAME", help="who did it")
        parser.add_argument("--agent", default="", metavar="NAME")
        kinds = [kind for kind in KINDS if kind]
        parser.add_argument("--kind", default="", choices=kinds)
        parser.add_argument(
            "--since", default="", metavar="WHEN", help="1h, 7d, or a date or time"
        )
        parser.add_argument(
            "--lines", type=_parse_count, default=MOST, metavar="N", help=f"({MOST})"
        )
        parser.add_argument(
            "--follow", action="store_true", help="go on with new records until Ctrl-C"
        )
        parser.add_argument(
            "--json", action="store_true", help="JSON Lines, as an export has them"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        filters = _build_filters(options)
        most: int = options["lines"]
        if not options["follow"]:
            self._print(terminal.list_newest_records(filters, most), options["json"])
            return
        with contextlib.suppress(KeyboardInterrupt):
            for rows in terminal.follow_records(filters, most):
                self._print(rows, options["json"])

    def _print(self, rows: list[LogRecord], as_json: bool) -> None:
        for line in terminal.format_records(rows, as_json=as_json):
            self.stdout.write(line)
        self.stdout.flush()


def _build_filters(options: dict[str, Any]) -> LogFilters:
    """The filter of the options. Raises CommandError."""
    try:
        since = terminal.parse_since(options["since"]) if options["since"] else ""
    except ValueError as error:
        raise CommandError(f"--since: {error}") from None
    words = " ".join(filter(None, (options["search"], options["request"])))
    named = {name: options[name] for name in ("actor", "agent", "kind")}
    return LogFilters.read({"q": words, "after": since, **named})


def _parse_count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= MOST_ASKED:
        raise ArgumentTypeError(f"not a number from 1 to {MOST_ASKED}")
    return int(text)
