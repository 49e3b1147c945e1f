"""`counterseal doctor`: what is right and wrong here, on one screen."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

from ...settings import mask_secrets
from ...terminal.text import Line, Screen, Style
from .. import server_commands
from ..diagnosis import NO_GATE, Finding, Level, check_client
from ..outcomes import ExitCode
from ..sessions import print_json

STYLES = {Level.OK: Style.ADDED, Level.WARN: Style.WARNING, Level.WRONG: Style.REMOVED}


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "doctor",
        help="say what is right and wrong here",
        description="Say what is right and wrong here: the versions, the gate that this"
        " machine's settings name, the key, and all parts of a gate that runs on this"
        " machine. Each line is ok, warn or wrong; below what is not ok stands a"
        " command that mends it or shows more. It changes nothing. Exit code 1 when"
        " something is wrong.",
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="print JSON, in ASCII")
    parser.set_defaults(run=run, by_person=False)


def run(given: argparse.Namespace) -> ExitCode:
    """Check everything, and print what was found."""
    # The client's come first: the server sets up a log of its own.
    of_client, of_server = list(check_client()), list_server_findings()
    if of_server:  # who runs a gate need not know another
        of_client = [
            replace(finding, level=Level.WARN) if finding.text == NO_GATE else finding
            for finding in of_client
        ]
    findings = [
        replace(finding, text=mask_secrets(finding.text))
        for finding in (*of_client, *of_server)
    ]
    wrong = sum(finding.level is Level.WRONG for finding in findings)
    if given.json:
        rows = [asdict(finding) for finding in findings]
        print_json({"ok": not wrong, "findings": rows})
    else:
        print_findings(findings)
    return ExitCode.ERROR if wrong else ExitCode.DONE


def list_server_findings() -> list[Finding]:
    """What the server's part finds, where it is installed and this machine has a
    gate."""
    if not server_commands.is_installed():
        return []
    try:
        rows = server_commands.diagnose()
    except Exception as error:  # the others are worth printing, whatever fails
        text = f"its own checks fail: {type(error).__name__}: {error}"
        return [Finding("Server", Level.WRONG, text, "counterseal check")]
    return [
        Finding(row["subject"], Level(row["level"]), row["text"], row["repair"])
        for row in rows
    ]


def print_findings(findings: Iterable[Finding]) -> None:
    """A line each, its repair below it, and the sum."""
    findings = list(findings)
    screen = Screen(sys.stdout)
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        line = f"{finding.level:<5}  {finding.subject:<{width}}  {finding.text}"
        screen.print_line(Line(line, style=STYLES[finding.level]))
        if finding.repair:
            screen.print_line(Line(finding.repair, indent=width + 9, copied=True))
    counts = {level: sum(f.level is level for f in findings) for level in Level}
    screen.print_line(
        f"{counts[Level.WRONG]} wrong, {counts[Level.WARN]} to look at,"
        f" {counts[Level.OK]} ok"
    )
