"""What must not happen in a run: how often it was looked for, and where it did."""

from __future__ import annotations

from dataclasses import dataclass, field

FEW = 3  # trials that bound nothing


@dataclass
class Claim:
    """Something that must not happen, in how many trials it was looked for, and a
    sentence about each time that it did."""

    text: str
    n: int = 0
    failures: list[str] = field(default_factory=list)
    instead: str = ""  # of a bound, where some are allowed

    def fail(self, sentence: str) -> None:
        self.failures.append(sentence)

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


class Findings:
    """What a checker came to; its claims are attributes."""

    @property
    def claims(self) -> list[Claim]:
        return [value for value in vars(self).values() if isinstance(value, Claim)]
