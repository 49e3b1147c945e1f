"""Record a new version of an agent."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents import registry
from agents.management.lookups import load_agent
from journal.errors import DomainError
from policies.management import lookups


class Command(BaseCommand):
    help = (
        "Records a new version of an agent's program, prompts and model. Its requests"
        " join no batch with requests of an earlier version."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("agent_version", metavar="version")
        parser.add_argument(
            "--by",
            required=True,
            help="username of an administrator or of the agent's owner",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        agent, by = load_agent(options["slug"]), lookups.load_person(options["by"])
        try:
            registry.release_version(
                agent=agent, version=options["agent_version"], by=by
            )
        except DomainError as error:
            raise CommandError(str(error)) from error
