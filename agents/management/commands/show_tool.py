"""`counterseal tools show`."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents import tool_lists
from agents.models import Agent
from policies import active
from policies.management import tables
from reviews.presenters import inert


class Command(BaseCommand):
    help = (
        "Prints one tool: what `counterseal tools list` lists of it, how often it was"
        " proposed, and its definition. Of a tool that no policy declares, the"
        " definition is made from its newest call."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        tables.add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        name: str = options["name"]
        tool = tool_lists.find_tool(name, active.find_active_policy())
        if tool is None:
            raise CommandError(
                f"There is no tool {inert.format_line(name)}: `counterseal tools list`"
                " lists all."
            )
        row = tool_lists.describe_tool(tool, list(Agent.objects.order_by("slug")))
        row |= {"version": tool.version, "calls": tool_lists.count_calls(tool)}
        if options["json"]:
            described = {**row, "definition": tool.definition}
            self.stdout.write(tables.format_json(described))
            return
        for line in tables.format_fields(row):
            self.stdout.write(inert.format_line(line))
        self.stdout.write("definition:")
        # ASCII, which nothing in it can leave.
        self.stdout.write(json.dumps(tool.definition, indent=2))
