"""The installed server: finds its packages, and runs its commands.

The server's packages have names like `desk` and `agents`, which other distributions
use, too. So a wheel keeps them in the folder `app` beside this file, and only processes
of the server look there. In a copy of the repository they stand beside this folder.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
APP = HERE / "app" if (HERE / "app").is_dir() else HERE.parent


def run(arguments: Sequence[str]) -> int:
    """Run one command of the server, such as `["up", "--demo"]`. Returns its exit
    code."""
    sys.path.insert(0, str(APP))
    from hitl.command_line import main

    return main(arguments)


def diagnose() -> list[dict[str, str]]:
    """What is right and wrong with the gate that this machine runs, for `counterseal
    doctor`: subject, level, text and repair of each finding."""
    sys.path.insert(0, str(APP))
    from hitl import doctor

    return doctor.diagnose()
