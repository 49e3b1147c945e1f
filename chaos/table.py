"""What stands on the terminal at the end."""

from __future__ import annotations

from collections.abc import Iterator

from .figures import Figures
from .strike import KINDS

WHAT = {"execution": "executions", "call": "calls of the web", "timer": "timers"}


def table(made: Figures) -> str:
    """All that matters, in columns."""
    return "\n".join(_lines(made))


def _lines(made: Figures) -> Iterator[str]:
    yield ""
    yield f"{made.requests:>8,}  requests in {made.loaded:.0f} s, quiet after"
    yield f"{'':>8}  {made.seconds:.0f} s; {made.effects:,} effects, "
    yield f"{'':>8}  {made.records:,} log records"
    yield f"{'':>8}  {made.stage}"
    yield ""
    for kind, count in made.kinds.items():
        yield f"{count:>8}  {KINDS[kind][1]}"
    yield ""
    for name, count in made.outcomes.items():
        yield f"{count:>8}  {name}"
    yield ""
    yield f"{'n':>8}  {'p50':>7}  {'p99':>7}  {'most':>7}  recovered"
    for what, one in made.recoveries.items():
        times = "  ".join(f"{one[name]:>5.1f} s" for name in ("p50", "p99", "most"))
        yield f"{one['n']:>8}  {times}  {WHAT[what]}"
    yield ""
    if made.slow:
        yield f"beyond {made.bound_s} s:"
        yield from (f"    {line}" for line in made.slow)
        yield ""
    for about, counts in made.post.items():
        said = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        yield f"{'':>8}  {about}: {said}"
    yield ""
    yield f"{made.given_up:>8}  that could be looked up were given up, no try left"
    yield f"{len(made.troubles):>8}  times an agent's patience ended first"
    yield ""
    for claim in made.claims:
        bound = f"{claim.failures} of {claim.n:,}, {claim.bound}"
        yield f"{'ok' if not claim.failures else 'BROKEN':>8}  {claim.text}: {bound}"
    for name, found in made.violations.items():
        yield ""
        yield f"{name}:"
        yield from (f"    {line}" for line in found)
    yield ""
    yield f"    {'HELD' if made.held else 'BROKEN'}   again: {made.command}"
