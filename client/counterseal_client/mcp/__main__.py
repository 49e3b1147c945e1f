"""`python -m counterseal_client.mcp`; see `command`."""

from __future__ import annotations

import sys

from .command import main

sys.exit(main())
