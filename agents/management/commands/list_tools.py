"""`counterseal tools list`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from agents import tool_lists
from policies import active
from policies.management import tables
from reviews.presenters import inert


class Command(BaseCommand):
    help = (
        "Lists the tools of the active policy, and those that agents have called"
        " without being declared: queue, risk, the least that a call needs, who"
        " performs it, and the agents that may propose it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        tables.add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        rows = tool_lists.list_tools(active.find_active_policy())
        in_json, empty = (
            options["json"],
            "No policy is active: counterseal policy load --help",
        )
        if not in_json:
            rows = [{**row, "tool": inert.format_line(row["tool"])} for row in rows]
        tables.write_rows(self.stdout, rows, in_json=in_json, empty=empty)
