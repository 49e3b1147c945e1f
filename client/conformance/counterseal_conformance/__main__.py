"""`counterseal conformance FRAMEWORK`: run the kit.

The gate is the one of `--target` (`make conformance` writes that file), or of `--gate`
and `--key` with the reviewer's `--token`. A gate that is given by options lacks what
some checks need; they are left out, and the kit says so.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from counterseal_client.command_line.main import CommandParser

from .catalogue import CHECKS, CheckResult
from .runner import (
    Score,
    format_table,
    print_line,
    run_framework,
    save_record,
)
from .subject import Target
from .variants import FRAMEWORKS


def parse_arguments(words: Sequence[str], program: str) -> argparse.Namespace:
    """The options of a command line. Ends the process when they do not fit."""
    parser = CommandParser(program)
    parser.add_argument("framework", choices=FRAMEWORKS, nargs="?")
    parser.add_argument("--target", type=Path, help="a file that describes the gate")
    parser.add_argument("--gate", help="the address of the gate")
    parser.add_argument("--key", help="the agent's key")
    parser.add_argument("--agent", default="conformance", help="the agent's name")
    parser.add_argument("--token", help="a reviewer's personal token")
    parser.add_argument("--bare", action="store_true", help="only without Counterseal")
    parser.add_argument(
        "--counterseal", action="store_true", help="only with Counterseal"
    )
    parser.add_argument("--check", action="append", default=[], choices=CHECKS)
    parser.add_argument("--json", type=Path, help="also write the results there")
    parser.add_argument("--list", action="store_true", help="print the checks")
    parser.add_argument(
        "--policy", action="store_true", help="print the tools that the gate needs"
    )
    given = parser.parse_args(words)
    if given.list or given.policy:
        return given
    if given.framework is None:
        parser.error("name a framework")
    if given.target is None and not (given.gate and given.key and given.token):
        parser.error("give --target, or --gate, --key and --token")
    return given


def build_target(given: argparse.Namespace) -> Target:
    """The gate of the arguments."""
    if given.target is not None:
        return Target.load(given.target)
    logins = {"reviewer": {"token": given.token}}
    return Target(given.gate.rstrip("/"), given.key, given.agent, logins)


def list_broken(scores: list[Score]) -> list[CheckResult]:
    """The checks that must hold with Counterseal and do not."""
    return [
        result
        for score in scores
        if score.gated
        for result in score.results
        if result.outcome == "failed"
    ]


def main(words: Sequence[str], program: str) -> int:
    """Run the command of these words; 0 if every promised check holds."""
    given = parse_arguments(words, program)
    if given.list:
        for name, sentence in CHECKS.items():
            print_line(f"{name:32} {sentence}")
        return 0
    if given.policy:
        print_line(files(__package__).joinpath("policy.yaml").read_text())
        return 0
    modes = (False,) if given.bare else (True,) if given.counterseal else (False, True)
    target = build_target(given)
    if True in modes and (lacks := target.list_lacks()):
        sys.stderr.write("\n".join([*lacks, "No check was run.", ""]))
        return 2
    scores = run_framework(target, given.framework, modes=modes, names=given.check)
    print_line(format_table(scores))
    if given.json is not None:
        save_record(given.json, scores)
    return 1 if list_broken(scores) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], "python -m counterseal_conformance"))
