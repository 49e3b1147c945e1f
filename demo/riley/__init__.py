"""Riley, the order-support agent: a planner over templates and look-ups.

Riley uses no language model. It is naive on purpose and proposes what a message asks
for, also when the message lies; the gate stands between Riley and the store.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

CLIENT = Path(__file__).resolve().parents[2] / "client"

# The client is a distribution of its own; an installation runs it from its folder.
if importlib.util.find_spec("holdpoint_client") is None:
    sys.path.append(str(CLIENT))
