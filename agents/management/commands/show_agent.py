"""`counterseal agents show`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.management import agent_rows
from journal import clock
from policies.management import tables
from reviews.presenters import inert


class Command(BaseCommand):
    help = "Prints what `counterseal agents list` lists of one agent."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        tables.add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        slug, in_json = options["slug"], options["json"]
        agent = agent_rows.select_agents().filter(slug=slug).first()
        if agent is None:
            raise CommandError(
                f"There is no agent {inert.format_line(slug)}: `counterseal agents"
                " list` lists all."
            )
        row = agent_rows.describe_agent(agent, clock.now(), in_json=in_json)
        if in_json:
            self.stdout.write(tables.format_json(row))
            return
        for line in tables.format_fields(row):
            self.stdout.write(inert.format_line(line))
