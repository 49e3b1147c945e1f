"""How the health page writes spans of time, and names that others chose."""

from __future__ import annotations

import re

UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def format_span(seconds: float) -> str:
    """A span in its largest unit, such as `3 h`."""
    for size, unit in UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def clean_name(name: object) -> str:
    """The name of a host, queue or program, which it gave itself: without what could
    change how the page reads."""
    return re.sub(r"[^\w ,.:@/-]", "?", str(name), flags=re.ASCII)[:80]
