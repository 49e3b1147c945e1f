"""`manage.py rotate_grant_key publish`, then `sign`, then `forget`."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from hitl.local import key_rotation
from hitl.local.layout import InstallationError

NEXT = {
    "publish": "Start every process anew, wait ten minutes, then run it with `sign`.",
    "sign": "Start every process anew; a day later run it with `forget`.",
    "forget": "Start every process anew. The old key is no longer accepted.",
}


class Command(BaseCommand):
    help = "Changes the key that signs grants, for keys that are files under STATE."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("step", choices=list(NEXT))

    def handle(self, *args: Any, **options: Any) -> None:
        step = options["step"]
        try:
            getattr(key_rotation, step)(settings.HOLDPOINT.state / "keys")
        except InstallationError as fault:
            raise CommandError(str(fault)) from None
        self.stdout.write(NEXT[step])
