"""`counterseal log verify`: whether the audit log is what was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from journal import restore_epochs, verification


class Command(BaseCommand):
    help = (
        "Reads every record of the audit log and checks that its bytes are those that"
        " were hashed, that none is missing, that the pages show what the records say,"
        " and that this is the history which this host has seen. Prints the root hash"
        " (RFC 6962): note it elsewhere, and give it back with --records and --root to"
        " see that those records are still the same. Exit code 1 when something is"
        " wrong."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--records", type=int, metavar="N", help="how many it had")
        parser.add_argument("--root", default="", metavar="HASH", help="noted then")
        parser.add_argument(
            "--archive",
            type=Path,
            metavar="FOLDER",
            help="check the files of archived periods, too",
        )
        parser.add_argument("--json", action="store_true", help="print an object")

    def handle(self, *args: Any, **options: Any) -> None:
        count, noted = options["records"], options["root"].lower()
        if (count is None) != (not noted) or (count or 0) < 0:
            raise CommandError("give --records and --root together, as they were noted")
        result = verification.verify_log(at=count, folder=options["archive"])
        faults = [*result.faults]
        if reason := restore_epochs.find_halt_reason():
            faults.append(restore_epochs.HALT_WORDS[reason])
        if count is not None and result.roots.get(count) != noted:
            faults.append(
                f"the first {count} records are not those whose root hash was noted"
            )
        if options["json"]:
            self._print_object(result, faults)
        else:
            self._print_lines(result, faults, count)
        if faults:
            raise SystemExit(1)

    def _print_object(
        self, result: verification.Verification, faults: list[str]
    ) -> None:
        described = {
            "ok": not faults,
            "records": result.records,
            "archived": result.archived,
            "root": result.root,
            "not_placed": result.waiting,
            "faults": faults,
        }
        self.stdout.write(json.dumps(described))

    def _print_lines(
        self, result: verification.Verification, faults: list[str], count: int | None
    ) -> None:
        for fault in faults:
            self.stdout.write(f"WRONG  {fault}")
        if len(result.faults) == verification.MOST_FAULTS:
            self.stdout.write("There may be more: this lists the first ones.")
        self.stdout.write(f"{result.records} records, root {result.root}")
        if result.archived:
            self.stdout.write(f"{result.archived} of them are in files")
        if result.waiting:
            self.stdout.write(f"{result.waiting} more wait for their place")
        if count is not None and not faults:
            self.stdout.write(f"The first {count} are those that were noted.")
