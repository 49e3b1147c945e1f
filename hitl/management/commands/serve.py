"""`counterseal serve`: one web process."""

from __future__ import annotations

import argparse
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from hitl import web
from hitl.static_files import collect_static_files


class Command(BaseCommand):
    help = "Runs one web process until SIGTERM. All processes of a host share its port."

    def add_arguments(self, parser: CommandParser) -> None:
        web.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        collect_static_files(settings.COUNTERSEAL.state)
        code = web.run_web_process(argparse.Namespace(**options))
        if code:
            raise CommandError("the web process did not start.", returncode=code)
