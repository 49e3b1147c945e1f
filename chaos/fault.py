"""A fault as it happened, and what kinds of them there are."""

from __future__ import annotations

from dataclasses import dataclass

from .options import LEASE_S

# kind -> (how many of a hundred, how it is called)
KINDS = {
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
CABLES = {"cut", "outage"}  # only where hosts have a network of their own


@dataclass
class Strike:
    """One fault as it happened. Times are of the clock on the wall."""

    kind: str
    at: float
    until: float  # a server answers again, or who was frozen or cut off goes on
    target: str = ""
    pids: tuple[int, ...] = ()
    slot: str = ""  # whose processes they are
    slots: tuple[str, ...] = ()  # all that were on a host

    @property
    def slept(self) -> bool:
        """Whether somebody was away for longer than a lease."""
        return self.until > self.at + LEASE_S
