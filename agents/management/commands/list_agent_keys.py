"""List an agent's keys: the prefix of each, its state, and when it was last used."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from agents.management import lookups
from agents.models import AgentKey
from journal import clock


class Command(BaseCommand):
    help = "Lists an agent's keys, newest first. Their secrets are not kept."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")

    def handle(self, *args: Any, **options: Any) -> None:
        agent, now = lookups.agent(options["slug"]), clock.now()
        keys = list(AgentKey.objects.filter(agent=agent).order_by("-created_at", "-pk"))
        if not keys:
            self.stdout.write(f"{agent.slug} has no key.")
        for key in keys:
            self.stdout.write(
                f"hp_{key.prefix}  {_state(key, now)}  made {_day(key.created_at)}, "
                f"last used {_day(key.last_used_at)}, {' and '.join(key.scopes)}"
            )


def _state(key: AgentKey, now: datetime) -> str:
    if key.revoked_at is not None:
        return f"revoked {_day(key.revoked_at)}"
    if key.expires_at is not None:
        word = "expired" if key.expires_at <= now else "works until"
        return f"{word} {_day(key.expires_at)}"
    return "works"


def _day(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC" if at else "never"
