"""`counterseal up`: a whole private installation on one machine."""

from __future__ import annotations

import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from hitl.local import installation
from hitl.local.layout import InstallationError


class Command(BaseCommand):
    help = "Starts database, broker, web processes and a worker. Ctrl-C stops them."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--demo",
            action="store_true",
            help="with people, a store to act on, and an agent at work",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Report a fault that a person can fix in one line, with exit code 1."""
        try:
            installation.run_installation(os.environ, self._say, demo=options["demo"])
        except InstallationError as fault:
            raise CommandError(str(fault)) from None

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
