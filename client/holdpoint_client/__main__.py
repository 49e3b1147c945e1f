"""`python -m holdpoint_client`: the command line `holdpoint`."""

from __future__ import annotations

import sys

from .command_line.main import main

if __name__ == "__main__":
    sys.exit(main())
