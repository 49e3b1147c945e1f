"""Change a person's role, ceiling or mail address."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from journal.errors import DomainError
from policies import money, people
from policies.choices import Role
from policies.management import lookups
from policies.models import Person


class Command(BaseCommand):
    help = (
        "Changes a person's role, ceiling or email address. The change applies to their"
        " next decision and to the check before an effect that they approved."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--by", required=True, help="an administrator's username")
        parser.add_argument("--role", choices=[role.value for role in Role])
        parser.add_argument("--email")
        ceiling = parser.add_mutually_exclusive_group()
        ceiling.add_argument("--ceiling", nargs=2, metavar=("AMOUNT", "CURRENCY"))
        ceiling.add_argument(
            "--no-ceiling", action="store_true", help="allow any amount"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        by = lookups.load_person(options["by"])
        who = lookups.load_person(options["username"])
        role = options["role"]
        try:
            change = people.PersonChange(
                role=Role(role) if role else None,
                email=options["email"],
                ceiling=lookups.parse_ceiling(options["ceiling"]),
                no_ceiling=options["no_ceiling"],
            )
            person = people.change_person(who, change, by=by)
        except DomainError as error:
            raise lookups.to_command_error(error) from error
        roles = ", ".join(person.groups.values_list("name", flat=True))
        self.stdout.write(
            f"{person.username}: {roles}, {person.email}, {_describe_ceiling(person)}"
        )


def _describe_ceiling(person: Person) -> str:
    amount = person.ceiling
    if amount is None:
        return "no ceiling"
    return f"up to {money.format_amount(amount)} {amount.currency}"
