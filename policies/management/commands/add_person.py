"""Add a person with a role and the queues they decide in."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from journal.errors import DomainError
from policies import people
from policies.choices import Role
from policies.management import lookups

from .set_password import read_password


class Command(BaseCommand):
    help = "Adds a person. Prompts for the password, or reads it from standard input."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--email", required=True)
        parser.add_argument("--role", required=True, choices=[r.value for r in Role])
        parser.add_argument("--first-name", default="")
        parser.add_argument("--last-name", default="")
        parser.add_argument("--queue", action="append", default=[], dest="queues")
        parser.add_argument(
            "--all-queues", action="store_true", help=lookups.EVERY_QUEUE
        )
        parser.add_argument("--ceiling", nargs=2, metavar=("AMOUNT", "CURRENCY"))
        parser.add_argument("--by", help="an administrator's username, for the log")

    def handle(self, *args: Any, **options: Any) -> None:
        by = lookups.load_actor(options["by"])
        queues = lookups.load_queues_by_name(
            options["queues"], every=options["all_queues"]
        )
        ceiling = lookups.parse_ceiling(options["ceiling"])
        try:
            person = people.add_person(
                people.NewPerson(
                    username=options["username"],
                    email=options["email"],
                    password=read_password(),
                    role=Role(options["role"]),
                    first_name=options["first_name"],
                    last_name=options["last_name"],
                    ceiling=ceiling,
                ),
                by=by,
            )
            people.admit_to_queues(person, queues, by=by)
        except DomainError as error:
            raise lookups.to_command_error(error) from error
        self.stdout.write(f"{person.username} is {person.public_id}")
