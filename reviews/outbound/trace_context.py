"""W3C Trace Context (https://www.w3.org/TR/trace-context/): the `traceparent` that an
agent sends with a proposal, and those that Counterseal sends on."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from django.conf import settings

HEADER = "traceparent"
SAMPLED = 1  # the flag of a trace that somebody records
# A later version begins like version 00; ff is forbidden, and so are ids of zeros.
_PATTERN = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?!0{32})(?P<trace>[0-9a-f]{32})"
    r"-(?!0{16})(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<rest>-.*)?"
)


@dataclass(frozen=True, slots=True)
class TraceParent:
    """A position in a trace: the trace and the span that caused what follows, as
    lower-case hexadecimal digits, 32 and 16 of them."""

    trace: str
    span: str
    flags: int

    @property
    def sampled(self) -> bool:
        return bool(self.flags & SAMPLED)

    def __str__(self) -> str:
        return f"00-{self.trace}-{self.span}-{self.flags:02x}"


def parse_traceparent(text: str) -> TraceParent | None:
    """Parse a header or a field; None if it is not a valid `traceparent`."""
    match = _PATTERN.fullmatch(text.strip())
    if match is None or (match["version"] == "00" and match["rest"]):
        return None
    return TraceParent(match["trace"], match["span"], int(match["flags"], 16))


def compute_span_id(row: str) -> str:
    """Compute the id of the span that describes this row, the same in each process and
    whenever it is exported."""
    return hashlib.sha256(f"counterseal span {row}".encode()).hexdigest()[:16]


def build_trace_headers(traceparent: str, row: str) -> dict[str, str]:
    """Build the header for a call that belongs to `row` of a proposal with this
    `traceparent`; empty without one. The caused work is below the row's span if
    Counterseal exports it. Otherwise it is below the agent's own span, because nobody
    would find the parent."""
    parent = parse_traceparent(traceparent)
    if parent is None:
        return {}
    if settings.COUNTERSEAL.exports_traces and parent.sampled:
        parent = TraceParent(parent.trace, compute_span_id(row), parent.flags)
    return {HEADER: str(parent)}
