"""Record a new version of an agent."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents import registry
from agents.models import Agent
from journal.errors import DomainError
from policies.management import lookups


class Command(BaseCommand):
    help = (
        "Records the version of an agent's program, prompts and model. What it proposes"
        " from now on is put into no batch with what a former version proposed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("agent_version", metavar="version")
        parser.add_argument("--by", required=True, help="the administrator's user name")

    def handle(self, *args: Any, **options: Any) -> None:
        agent = Agent.objects.filter(slug=options["slug"]).first()
        if agent is None:
            raise CommandError(f"No agent is called {options['slug']}.")
        by = lookups.load_person(options["by"])
        try:
            registry.release_version(
                agent=agent, version=options["agent_version"], by=by
            )
        except DomainError as error:
            raise CommandError(str(error)) from error
