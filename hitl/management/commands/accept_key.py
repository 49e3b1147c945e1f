"""`counterseal keys accept GRANT_KEY`: after a leak, without the former key."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from journal import known_keys


class Command(BaseCommand):
    help = (
        "Makes this host's key the installation's, although nobody keeps the former"
        " one: after a leak, or when a backup of an earlier time was restored. Hosts"
        " that have the former one do not start any more."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", choices=[*known_keys.SIGNING])

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["name"]
        key_id = known_keys.accept_key(name)
        self.stdout.write(f"This installation now uses the {name} {key_id}.")
