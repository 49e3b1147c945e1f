"""Writes reviews/presenters/confusables.txt: Unicode's table of confusables, with each
prototype once.

`python -m tests.house.confusables FILE`, where FILE is the table of the Unicode
Security Mechanisms (UTS 39).
"""

from __future__ import annotations

import sys
from collections import defaultdict
from itertools import takewhile
from pathlib import Path

from tests.guards import ROOT

TABLE = ROOT / "reviews" / "presenters" / "confusables.txt"
LICENCE = "# SPDX-License-Identifier: Unicode-3.0"
MADE = (
    "# Made by `python -m tests.house.confusables`: prototype, and what looks like it."
)


def shorten(text: str) -> str:
    """The table without its comments, but for those at its head."""
    lines = text.removeprefix("\ufeff").splitlines()
    head = [line for line in takewhile(lambda line: line[:1] == "#", lines) if line[1:]]
    alike = defaultdict(list)
    for line in lines:
        fields = line.partition("#")[0].split(";")
        if len(fields) > 1:
            alike[fields[1].strip()].append(fields[0].strip())
    rows = [f"{prototype}: {' '.join(alike[prototype])}" for prototype in sorted(alike)]
    return "\n".join([*head, LICENCE, MADE, *rows, ""])


if __name__ == "__main__":
    TABLE.write_text(shorten(Path(sys.argv[1]).read_text("utf-8")), "utf-8")
