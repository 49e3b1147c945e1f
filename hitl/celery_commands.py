"""Celery's own commands, as the product needs them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from .environment import ROOT


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
