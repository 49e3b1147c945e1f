"""Riley, the order-support agent: a planner over templates and look-ups.

There is no language model here. Riley is naive on purpose: what a message asks for it
proposes, also when the message lies. The gate is what stands between.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

CLIENT = Path(__file__).resolve().parents[2] / "client"

# The client is a distribution of its own; here it is taken from beside the demo.
if importlib.util.find_spec("holdpoint_client") is None:
    sys.path.append(str(CLIENT))
