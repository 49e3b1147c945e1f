"""The programs that read the files in deploy/, and the charts' library."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.guards import ROOT, lacking

DEPLOY = ROOT / "deploy"
KEY = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
# Of `make charts`: Helm's library and the schemas of Kubernetes.
CHARTS = ROOT / "var" / "charts" / "bin" / "python"
SBIN = "/usr/sbin:/usr/bin:/usr/local/bin"


def run(*command: str, folder: Path = ROOT) -> str:
    """What a program printed. Fails unless it succeeds."""
    program = shutil.which(command[0], path=SBIN)
    if program is None:
        lacking(command[0])
    done = subprocess.run(
        [program, *command[1:]], capture_output=True, text=True, cwd=folder
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
