"""What stands on the terminal at the end."""

from __future__ import annotations

from collections.abc import Iterator

from .fault import KINDS
from .figures import Figures

WHAT = {"execution": "executions", "call": "calls of the web", "timer": "timers"}


def table(made: Figures) -> str:
    """All that matters, in columns."""
    parts = (_size, _counts, _recovered, _post, _verdict)
    return "\n".join(line for part in parts for line in ("", *part(made)))


def _size(made: Figures) -> Iterator[str]:
    yield f"{made.requests:>8,}  requests in {made.loaded:.0f} s, quiet after"
    yield f"{'':>8}  {made.seconds:.0f} s; {made.effects:,} effects, "
    yield f"{'':>8}  {made.records:,} log records"
    yield f"{'':>8}  {made.stage}"


def _counts(made: Figures) -> Iterator[str]:
    for kind, count in made.kinds.items():
        yield f"{count:>8}  {KINDS[kind][1]}"
    yield ""
    for name, count in made.outcomes.items():
        yield f"{count:>8}  {name}"


def _recovered(made: Figures) -> Iterator[str]:
    yield f"{'n':>8}  {'p50':>7}  {'p99':>7}  {'most':>7}  recovered"
    for what, one in made.recoveries.items():
        times = "  ".join(f"{one[name]:>5.1f} s" for name in ("p50", "p99", "most"))
        yield f"{one['n']:>8}  {times}  {WHAT[what]}"
    if made.slow:
        yield ""
        yield f"beyond {made.bound_s} s:"
        yield from (f"    {line}" for line in made.slow)


def _post(made: Figures) -> Iterator[str]:
    for about, counts in made.post.items():
        said = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        yield f"{'':>8}  {about}: {said}"
    yield ""
    yield f"{made.given_up:>8}  that could be looked up were given up, no try left"
    yield f"{made.belied:>8}  answers of people belied by a late effect, with an alarm"
    yield f"{made.impatient:>8,}  times an agent's patience ended first"


def _verdict(made: Figures) -> Iterator[str]:
    for claim in made.claims:
        bound = f"{claim.failures} of {claim.n:,}, {claim.bound}"
        yield f"{'ok' if not claim.failures else 'BROKEN':>8}  {claim.text}: {bound}"
    for name, found in made.violations.items():
        yield ""
        yield f"{name}:"
        yield from (f"    {line}" for line in found)
    for what, count in made.left.items():
        yield f"{count:>8,}  still to come: {what}"
    yield ""
    yield f"    {'HELD' if made.held else 'BROKEN'}   again: {made.command}"
