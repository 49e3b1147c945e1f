"""List an agent's keys: the prefix of each, its state, and when it was last used."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from agents.management import lookups
from agents.models import AgentKey
from journal import clock


class Command(BaseCommand):
    help = (
        "Lists an agent's keys, newest first. Counterseal does not store the secrets."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")

    def handle(self, *args: Any, **options: Any) -> None:
        agent, now = lookups.load_agent(options["slug"]), clock.now()
        keys = list(AgentKey.objects.filter(agent=agent).order_by("-created_at", "-pk"))
        if not keys:
            self.stdout.write(f"{agent.slug} has no keys.")
        for key in keys:
            self.stdout.write(
                f"cs_{key.prefix}  {_describe_key_state(key, now)}  "
                f"created {_format_time(key.created_at)}, "
                f"last used {_format_time(key.last_used_at)}, "
                f"{' and '.join(key.scopes)}"
            )


def _describe_key_state(key: AgentKey, now: datetime) -> str:
    if key.revoked_at is not None:
        return f"revoked {_format_time(key.revoked_at)}"
    if key.expires_at is not None:
        word = "expired" if key.expires_at <= now else "valid until"
        return f"{word} {_format_time(key.expires_at)}"
    return "valid"


def _format_time(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC" if at else "never"
