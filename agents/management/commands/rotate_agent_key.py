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
        "Issues and prints a new key of an agent. The key is not shown again. Existing"
        " keys stay valid until you revoke them (`counterseal agents keys`,"
        " `counterseal agents revoke-key`)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument(
            "--by",
            required=True,
            help="username of an administrator or of the agent's owner",
        )
        parser.add_argument("--days", type=int, help="days until the key expires")

    def handle(self, *args: Any, **options: Any) -> None:
        agent, days = lookups.load_agent(options["slug"]), options["days"]
        if days is not None and not 1 <= days <= 3650:
            raise CommandError("--days must be from 1 to 3650.")
        until = None if days is None else clock.now() + timedelta(days=days)
        try:
            by = load_person(options["by"])
            text = keys.issue_key(agent=agent, by=by, expires_at=until)
        except DomainError as error:
            raise to_command_error(error) from error
        self.stdout.write(text)
