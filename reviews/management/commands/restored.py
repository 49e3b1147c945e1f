"""`counterseal restored`: two people, one after the other, confirm that a restored
database may be used."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from journal.errors import DomainError
from policies.management import lookups
from reviews import recovery


class Command(BaseCommand):
    help = "Confirms a restored database. After two people confirm, a new epoch begins."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--by", required=True, metavar="USERNAME")
        parser.add_argument(
            "--reason", required=True, help="what was restored, and why"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        person = lookups.load_person(options["by"])
        try:
            epoch = recovery.confirm_restore(person=person, reason=options["reason"])
        except DomainError as error:
            raise CommandError(error.detail) from error
        if epoch.began_at is None:
            message = (
                "Recorded. A second person must confirm:"
                " `counterseal restored --by NAME --reason TEXT`."
            )
        else:
            message = f"Epoch {epoch.number} begins. Workers resume automatically."
        self.stdout.write(message)
