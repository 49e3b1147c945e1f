"""Riley, the order-support agent: a planner over templates and look-ups.

Riley uses no language model. It is naive on purpose and proposes what a message asks
for, also when the message lies; the gate stands between Riley and the store.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The client is a distribution of its own that `make up` does not install.
sys.path.append(str(Path(__file__).resolve().parents[2] / "client"))
