"""`python -m counterseal_client`: the command line `counterseal`."""

from __future__ import annotations

import sys

from .command_line.main import main

if __name__ == "__main__":
    sys.exit(main())
