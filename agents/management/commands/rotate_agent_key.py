"""Issue another key for an agent. Its existing keys work until they are revoked."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents import keys
from agents.management import lookups
from journal import clock
from journal.errors import DomainError
from policies.management.lookups import load_person, to_command_error


class Command(BaseCommand):
    help = (
        "Prints a new key of an agent, which is not shown again. The keys that it has"
        " work until each is revoked (list_agent_keys, revoke_agent_key)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument(
            "--by", required=True, help="an administrator or the agent's owner"
        )
        parser.add_argument("--days", type=int, help="it ends after so many days")

    def handle(self, *args: Any, **options: Any) -> None:
        agent, by, days = (
            lookups.load_agent(options["slug"]),
            options["by"],
            options["days"],
        )
        if days is not None and not 1 <= days <= 3650:
            raise CommandError("--days is from 1 to 3650.")
        until = None if days is None else clock.now() + timedelta(days=days)
        try:
            text = keys.issue_key(agent=agent, by=load_person(by), expires_at=until)
        except DomainError as error:
            raise to_command_error(error) from error
        self.stdout.write(text)
