"""Revoke one key of an agent, with effect from its next call."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents import keys
from agents.management import lookups
from journal.errors import DomainError
from policies.management.lookups import load_person, to_command_error


class Command(BaseCommand):
    help = "Revokes one key of an agent immediately. Its other keys stay valid."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument(
            "key", help="its prefix, as `counterseal agents keys` prints it"
        )
        parser.add_argument(
            "--by",
            required=True,
            help="username of an administrator or of the agent's owner",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        agent, by = lookups.load_agent(options["slug"]), load_person(options["by"])
        key = lookups.load_key(agent, options["key"])
        if key.revoked_at is not None:
            raise CommandError(f"{options['key']} is already revoked.")
        try:
            keys.revoke_key(key=key, by=by)
        except DomainError as error:
            raise to_command_error(error) from error
        self.stdout.write(f"cs_{key.prefix} of {agent.slug} is revoked.")
