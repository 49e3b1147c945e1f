"""Register a webhook endpoint of an agent, and print its signing secret once."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.management.lookups import load_agent
from agents.webhooks import endpoints
from journal.errors import DomainError
from policies.management import lookups


class Command(BaseCommand):
    help = (
        "Registers a URL that receives an agent's webhooks, and prints the secret that"
        " signs them. The secret is not shown again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("url")
        parser.add_argument(
            "--by",
            required=True,
            help="username of an administrator or of the agent's owner",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        agent, by = load_agent(options["slug"]), lookups.load_person(options["by"])
        try:
            _, secret = endpoints.register_endpoint(
                agent=agent, url=options["url"], by=by
            )
        except DomainError as error:
            messages = "; ".join(fault["message"] for fault in error.errors)
            raise CommandError(messages or error.detail) from error
        self.stdout.write(secret)
