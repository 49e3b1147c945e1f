"""`counterseal policy list`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from policies.management import tables
from policies.models import PolicyVersion


class Command(BaseCommand):
    help = "Lists the versions of the policy, newest first: who saved and activated it."

    def add_arguments(self, parser: CommandParser) -> None:
        tables.add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        versions = PolicyVersion.objects.select_related("author", "activated_by")
        rows = [
            {
                "version": version.number,
                "status": version.status,
                "saved_by": getattr(version.author, "username", None),
                "saved_at": _format_time(version.created_at),
                "activated_by": getattr(version.activated_by, "username", None),
                "activated_at": _format_time(version.activated_at),
            }
            for version in versions.defer("document").order_by("-number")
        ]
        empty = "No policy is saved yet: counterseal policy load --help"
        tables.write_rows(self.stdout, rows, in_json=options["json"], empty=empty)


def _format_time(at: datetime | None) -> str | None:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if at else None
