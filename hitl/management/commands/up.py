"""`counterseal up`: a whole private installation on one machine."""

from __future__ import annotations

import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from hitl.local import installation, starter, welcome
from hitl.local.layout import InstallationError, Layout


class Command(BaseCommand):
    help = (
        "Starts database, broker, web processes and a worker; Ctrl-C stops them. A new"
        " gate begins with a policy that holds every call for a person."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--demo",
            action="store_true",
            help="with people, a store to act on, and an agent at work",
        )
        parser.add_argument(
            "--solo",
            action="store_true",
            help="for one person who tries everything alone, on this machine only",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Report a fault that a person can fix in one line, with exit code 1."""
        try:
            installation.run_installation(
                os.environ, self._say, demo=options["demo"], prepare=_prepare
            )
        except InstallationError as fault:
            raise CommandError(str(fault)) from None

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _prepare(here: Layout, demo: bool) -> tuple[list[str], list[str]]:
    if demo:
        starter.prepare_demo_agent()
    else:
        starter.prepare_gate(here)
    way_in, first_call = welcome.describe_way_in(here), welcome.describe_first_call()
    return list(way_in), list(first_call)
