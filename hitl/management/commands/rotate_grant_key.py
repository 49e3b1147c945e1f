"""`counterseal keys rotate-grant publish`, then `sign`, then `forget`."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from hitl.local import key_rotation
from hitl.local.layout import InstallationError

NEXT = {
    "publish": "Restart every process, wait ten minutes, then run this with `sign`.",
    "sign": "Restart every process. A day later run this with `forget`.",
    "forget": "Restart every process. The old key is then no longer accepted.",
}


class Command(BaseCommand):
    help = "Rotates the key that signs grants, in three steps, for key files in STATE."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("step", choices=list(NEXT))

    def handle(self, *args: Any, **options: Any) -> None:
        step, folder = options["step"], settings.COUNTERSEAL.state / "keys"
        if not (folder / key_rotation.SIGNS).exists():
            raise CommandError(
                f"STATE: {folder} has no file {key_rotation.SIGNS}: a key that is a"
                " variable is changed where it is set"
            )
        try:
            getattr(key_rotation, step)(folder)
        except InstallationError as fault:
            raise CommandError(str(fault)) from None
        self.stdout.write(NEXT[step])
