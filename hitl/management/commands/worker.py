"""`counterseal worker`: one Celery worker."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandParser

from hitl.environment import ROOT


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
        become_celery(arguments)


def become_celery(arguments: Sequence[str]) -> NoReturn:
    """Replace this process by one of Celery, under the same process id.

    SIGTERM then means what SIGQUIT means to Celery, a stop that hands back what still
    runs: Celery reads that from the environment when it is imported.
    """
    known = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), known]))
    os.environ["REMAP_SIGTERM"] = "SIGQUIT"
    # -P: a folder that the command happens to be started in hides no module of ours.
    command = [sys.executable, "-P", "-m", "celery", "--app", "hitl.celery"]
    os.execv(sys.executable, [*command, *arguments])  # noqa: S606
