"""`counterseal worker`: one Celery worker."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from hitl import celery_commands


class Command(BaseCommand):
    help = (
        "Runs one worker. SIGTERM lets running effects finish, or hands them back to"
        " another worker."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--concurrency", type=int, default=4, metavar="N", help="processes (4)"
        )
        parser.add_argument(
            "--queues", default="", metavar="NAMES", help="only these, by commas"
        )
        parser.add_argument(
            "--beat", action="store_true", help="also run the clock of the sweeps"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        arguments = ["worker", "--concurrency", str(options["concurrency"])]
        if options["queues"]:
            arguments += ["--queues", options["queues"]]
        if options["beat"]:
            arguments.append("--beat")
        celery_commands.become_celery(arguments)
