"""`counterseal log archive`: moves an old period of the log into a file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from journal.archives import BrokenArchive
from journal.errors import DomainError
from journal.models import LogPeriod
from policies.management import lookups
from reviews.administration import log_archive

_MONTH = re.compile(r"(\d{4})-(0[1-9]|1[0-2])")


class Command(BaseCommand):
    help = (
        "Writes an old period of the audit log into a file and checks the file. Once a"
        " second person gives the same command, the period leaves the database. What"
        " proofs about later records need stays. LOG_KEEP_MONTHS says how old a"
        " period has to be."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("period", metavar="MONTH", help="2026-03, or its number")
        parser.add_argument("--to", required=True, metavar="FOLDER", type=Path)
        parser.add_argument("--by", required=True, metavar="USERNAME")
        parser.add_argument("--reason", required=True)
        parser.add_argument(
            "--without-texts",
            action="store_true",
            help="leave out what people wrote: it is then lost",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        person = lookups.load_person(options["by"])
        for period in _find_periods(options["period"]):
            try:
                done = log_archive.archive_period(
                    period,
                    options["to"],
                    person=person,
                    reason=options["reason"],
                    texts=not options["without_texts"],
                )
            except DomainError as error:
                raise CommandError(f"period {period.number}: {error.detail}") from error
            except (BrokenArchive, OSError) as error:
                raise CommandError(f"period {period.number}: {error}") from error
            self.stdout.write(_describe(done))


def _find_periods(text: str) -> list[LogPeriod]:
    """The periods that the argument names. Raises CommandError."""
    if month := _MONTH.fullmatch(text):
        periods = log_archive.list_periods_of_month(int(month[1]), int(month[2]))
    elif text.isascii() and text.isdecimal() and len(text) < 10:
        periods = list(LogPeriod.objects.filter(number=int(text)))
    else:
        raise CommandError("the period is a month such as 2026-03, or a number")
    if not periods:
        raise CommandError(f"no period of the log began in {text}, or has this number")
    return periods


def _describe(period: LogPeriod) -> str:
    about = (
        f"Period {period.number}: {period.records} records in {period.archive_file},"
        f" SHA-256 {period.archive_digest}."
    )
    if period.archived_at is None:
        return f"{about} A second person must give the same command."
    return f"{about} They are no longer in the database."
