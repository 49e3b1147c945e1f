"""`counterseal agents list`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from agents.management import agent_rows
from journal import clock
from policies.management import tables


class Command(BaseCommand):
    help = (
        "Lists the agents: owner, tools, highest risk, version, valid keys, and what is"
        " left of the limits in 24 hours."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        tables.add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        in_json, now = options["json"], clock.now()
        rows = [
            agent_rows.describe_agent(agent, now, in_json=in_json)
            for agent in agent_rows.select_agents()
        ]
        empty = "No agent is registered: counterseal agents register --help"
        tables.write_rows(self.stdout, rows, in_json=in_json, empty=empty)
