"""`counterseal wait`: wait until a proposal is decided and performed."""

from __future__ import annotations

import argparse
from typing import Any

from ...gate import Gate
from ..outcomes import ExitCode
from ..sessions import parse_seconds
from .propose import show_proposal, wait_for_people


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "wait",
        help="wait for a proposal",
        description="Wait until a proposal is final, there is a grant to redeem, or a"
        " reviewer wrote. Waiting holds nothing at the gate; stop and wait on at will.",
        allow_abbrev=False,
    )
    parser.add_argument("proposal", metavar="PROPOSAL", help="its id, p-...")
    parser.add_argument(
        "--timeout",
        type=parse_seconds,
        default=300.0,
        metavar="SECONDS",
        help="how many seconds to wait for a decision (300)",
    )
    parser.add_argument("--json", action="store_true", help="print the API's object")
    parser.set_defaults(run=run, by_person=False)


def run(given: argparse.Namespace) -> ExitCode:
    """Wait, and print what became of the proposal."""
    with Gate() as gate:
        proposal = wait_for_people(gate, given.proposal, given.timeout)
        return show_proposal(gate, proposal, as_json=given.json)
