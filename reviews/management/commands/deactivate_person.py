"""`manage.py deactivate_person`: end a person's account, their sessions and tokens, and
their approvals of effects that have not run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandParser

from journal.errors import DomainError
from policies.management import lookups
from policies.models import Person
from reviews.stops import accounts


class Command(BaseCommand):
    help = (
        "Ends an account: the person's sessions and tokens at once, and their approvals"
        " of what has not run. What waits is asked of others."
    )
    operation: ClassVar[Callable[..., None]] = accounts.deactivate_account
    done: ClassVar[str] = "is deactivated: sessions, tokens and approvals ended."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--by", required=True, help="an administrator's user name")

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
                f"They own the agent {slug}, which runs on. Stop it on its page, or"
                f" give it another owner: change_agent {slug} --owner NAME."
            )
