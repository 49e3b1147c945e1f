"""`counterseal worker`: one Celery worker."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandParser

from hitl.celery_workarounds import STOP_WITHIN_S
from hitl.environment import ROOT


class Command(BaseCommand):
    help = (
        "Runs one worker. After SIGTERM it takes no new task, lets the running ones"
        f" finish, and ends within {STOP_WITHIN_S:.0f} s."
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
        become_celery(arguments)


def become_celery(arguments: Sequence[str]) -> NoReturn:
    """Replace this process by one of Celery, under the same process id."""
    known = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), known]))
    # -P: a folder that the command happens to be started in hides no module of ours.
    command = [sys.executable, "-P", "-m", "celery", "--quiet"]
    command += ["--app", "hitl.celery"]
    os.execv(sys.executable, [*command, *arguments])  # noqa: S606
