"""`counterseal people deactivate`: end a person's account, their sessions and tokens,
and their approvals of effects that have not run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandParser

from journal.errors import DomainError
from policies.management import lookups
from policies.models import Person
from reviews.administration import accounts


class Command(BaseCommand):
    help = (
        "Deactivates an account: ends the person's sessions, revokes their tokens and"
        " their approvals of actions that have not run. Other people are asked instead."
    )
    operation: ClassVar[Callable[..., None]] = accounts.deactivate_account
    done: ClassVar[str] = "is deactivated: sessions, tokens and approvals ended."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--by", required=True, help="an administrator's username")

    def handle(self, *args: Any, **options: Any) -> None:
        by, who = (
            lookups.load_person(options["by"]),
            lookups.load_person(options["username"]),
        )
        try:
            type(self).operation(person=who, by=by)
        except DomainError as error:
            raise lookups.to_command_error(error) from error
        self.stdout.write(f"{who.username} {type(self).done}")
        self._tell_more(who)

    def _tell_more(self, who: Person) -> None:
        owned = who.agents.values_list("slug", flat=True)
        for slug in owned.order_by("slug"):
            self.stdout.write(
                f"They own the agent {slug}, which keeps running. Stop it on its page,"
                " or change its owner:"
                f" `counterseal agents change {slug} --by ADMINISTRATOR --owner NAME`."
            )
