"""How long and how hard a run is, which faults fall how often, and the ladder of
time-outs that recovery is measured by."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

# hitl/checks.py holds their order. Short, so that no lapsed lease is waited for long.
LADDER = {
    "HTTP_TIMEOUT": 1,
    "SOFT_TIME_LIMIT": 4,
    "TIME_LIMIT": 5,
    "LEASE_SECONDS": 7,
    "VISIBILITY_TIMEOUT": 12,
}
LEASE_S = LADDER["LEASE_SECONDS"]
SWEEP_S = 5  # the slowest of the sweeps that hand over what a dead worker left
# kind -> (how many of a hundred, how it is called)
FAULT_KINDS = {
    "worker": (14, "worker killed, its whole group"),
    "child": (14, "one process of a worker killed"),
    "web": (10, "web process killed"),
    "postgres": (12, "PostgreSQL restarted, immediate"),
    "valkey": (8, "Valkey killed"),
    "flush": (8, "Valkey emptied"),
    "pause": (9, "worker frozen past its lease"),
    "point": (12, "a named point: killed, broken or frozen"),
    "cut": (8, "a host cut off from all others"),
    "outage": (5, "PostgreSQL and Valkey cut off"),
}
NETWORK_KINDS = {"cut", "outage"}  # only where hosts have a network of their own


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller chose."""

    requests: int
    seconds: float  # over which they come
    between: tuple[float, float]  # seconds from one fault to the next
    webs: int
    workers: int
    hosts: int  # that webs and workers are spread over
    seed: int
    short: bool
    retail: bool = False  # the tasks of tests/retail instead of drawn requests

    @property
    def command(self) -> str:
        """What to type to see the same again."""
        words = [f"--seed {self.seed}"]
        usual = USUAL[self.retail, self.short]
        for name in ("requests", "seconds", "webs", "workers", "hosts"):
            if getattr(self, name) != usual[name]:
                words.append(f"--{name} {getattr(self, name):g}")
        short = "SHORT=1 " if self.short else ""
        retail = "RETAIL=1 " if self.retail else ""
        return f"make chaos {retail}{short}ARGS={shlex.quote(' '.join(words))}"


SIZE = {"webs": 2, "workers": 3, "hosts": 2}
FULL = {"requests": 10_000, "seconds": 3600.0, **SIZE}
SHORT = {"requests": 240, "seconds": 70.0, **SIZE}
BETWEEN = {False: (1.0, 10.0), True: (1.0, 6.0)}
# Here requests are tasks, of one call or two each.
RETAIL = {"requests": 520, "seconds": 300.0, **SIZE}
RETAIL_SHORT = {"requests": 52, "seconds": 40.0, **SIZE}
RETAIL_BETWEEN = {False: (1.0, 10.0), True: (1.0, 3.0)}
USUAL = {
    (False, False): FULL,
    (False, True): SHORT,
    (True, False): RETAIL,
    (True, True): RETAIL_SHORT,
}
