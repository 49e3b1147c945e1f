"""Add a person with a role and the queues they decide in."""

from __future__ import annotations

import getpass
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from journal.errors import DomainError
from journal.log import Actor
from policies import money, people
from policies.choices import Role
from policies.management import lookups


class Command(BaseCommand):
    help = "Adds a person. The password is asked for, or read from standard input."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--email", required=True)
        parser.add_argument("--role", required=True, choices=[r.value for r in Role])
        parser.add_argument("--first-name", default="")
        parser.add_argument("--last-name", default="")
        parser.add_argument("--queue", action="append", default=[], dest="queues")
        parser.add_argument("--ceiling", nargs=2, metavar=("AMOUNT", "CURRENCY"))

    def handle(self, *args: Any, **options: Any) -> None:
        by = Actor("system", "command")
        queues = [lookups.queue(name) for name in options["queues"]]
        ceiling = options["ceiling"]
        try:
            person = people.add(
                people.Newcomer(
                    username=options["username"],
                    email=options["email"],
                    password=self._password(),
                    role=Role(options["role"]),
                    first_name=options["first_name"],
                    last_name=options["last_name"],
                    ceiling=money.parse(*ceiling) if ceiling else None,
                ),
                by=by,
            )
            people.admit(person, queues, by=by)
        except DomainError as error:
            rules = "; ".join(entry["message"] for entry in error.errors)
            raise CommandError(f"{error.detail} {rules}".strip()) from error
        self.stdout.write(f"{person.username} is {person.public_id}")

    def _password(self) -> str:
        if sys.stdin.isatty():
            return getpass.getpass()
        return sys.stdin.readline().rstrip("\n")
