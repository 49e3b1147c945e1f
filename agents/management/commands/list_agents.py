"""`counterseal agents list`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db.models import Count, F, Q
from django.db.models.functions import Now

from agents.models import Agent
from policies.management import tables
from reviews.presenters import inert

VALID_KEY = Q(keys__revoked_at__isnull=True) & (
    Q(keys__expires_at__isnull=True) | Q(keys__expires_at__gt=Now())
)


class Command(BaseCommand):
    help = "Lists the agents: owner, tools, highest risk, version and valid keys."

    def add_arguments(self, parser: CommandParser) -> None:
        tables.add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        agents = Agent.objects.annotate(
            owned_by=F("owner__username"), valid=Count("keys", filter=VALID_KEY)
        )
        rows = [
            {
                "agent": agent.slug,
                "owner": agent.owned_by,
                "risk_up_to": agent.risk_ceiling,
                "version": inert.format_line(agent.version),
                "valid_keys": agent.valid,
                "tools": sorted(agent.tools),
            }
            for agent in agents.order_by("slug")
        ]
        empty = "No agent is registered: counterseal agents register --help"
        tables.write_rows(self.stdout, rows, in_json=options["json"], empty=empty)
