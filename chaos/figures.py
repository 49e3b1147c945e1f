"""What a run comes to, as plain data: for the table, the page and report.json."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from .options import LADDER, LEASE_S, SWEEP_S

FEW = 3  # trials that bound nothing


@dataclass(frozen=True)
class Claim:
    """One sentence that must hold, on how many trials, and what that bounds."""

    text: str
    n: int
    failures: int
    instead: str = ""  # of a bound, where some are allowed

    @property
    def bound(self) -> str:
        """No failure in n trials: at most 3/n of all, at 95 % confidence."""
        if self.failures:
            return "broken"
        if self.instead and self.n:
            return self.instead
        if self.n <= FEW:
            return "too few to say" if self.n else "nothing tried"
        return f"at most {300 / self.n:.3f} %"


@dataclass
class Figures:
    """Times in seconds since the first request; `at` of the start is in UTC."""

    at: str
    command: str
    seed: int
    short: bool
    stage: str  # what ran where
    seconds: float  # until all was quiet
    loaded: float  # until the last fault
    requests: int
    proposals: int
    effects: int
    records: int
    steps: int
    claims: list[Claim]
    faults: list[dict[str, Any]]
    kinds: dict[str, int]
    outcomes: dict[str, int]
    classes: dict[str, dict[str, int]]
    recoveries: dict[str, dict[str, Any]]
    recovered: list[dict[str, Any]]
    slow: list[str]  # executions beyond the bound, step by step
    asked: list[float]
    ended: list[float]
    violations: dict[str, list[str]]
    stale: dict[str, int]
    restarts: dict[str, int]
    services: dict[str, int]
    counts: dict[str, int]
    given_up: int  # of keyed and queryable effects, and a person was asked
    belied: int  # answers of people that a sleeper's effect belied, with an alarm
    left: dict[str, int]  # what was still to come when the run was ended
    troubles: list[str]  # the first, of agents whose patience ended before an answer
    impatient: int = 0  # how many in all
    post: dict[str, dict[str, int]] = field(default_factory=dict)
    ladder: dict[str, int] = field(default_factory=lambda: dict(LADDER))

    @property
    def bound_s(self) -> int:
        return LEASE_S + SWEEP_S

    @property
    def held(self) -> bool:
        return not any(claim.failures for claim in self.claims)

    def as_json(self) -> str:
        said = asdict(self) | {"held": self.held, "bound_s": self.bound_s}
        return json.dumps(said, indent=1)
