"""Remove the second factor that a person lost."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from journal.errors import DomainError
from policies import second_factors
from policies.management import lookups


class Command(BaseCommand):
    help = (
        "Removes a person's authenticator app and recovery codes, so that the password"
        " alone signs them in. On the page of the person this takes two administrators."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--by", required=True, help="an administrator's username")

    def handle(self, *args: Any, **options: Any) -> None:
        by = lookups.load_person(options["by"])
        who = lookups.load_person(options["username"])
        try:
            second_factors.remove_lost_factor(who, by=by)
        except DomainError as error:
            raise lookups.to_command_error(error) from error
        self.stdout.write(f"{who.username} has no second factor any more.")
