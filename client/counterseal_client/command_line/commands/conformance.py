"""`counterseal conformance`: the checks of an agent framework's approvals, from the
distribution `counterseal-conformance`."""

from __future__ import annotations

import argparse
from typing import Any

from ..sessions import InvalidUsage
from .mcp import add_words_parser


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    text = "check an agent framework's approvals"
    add_words_parser(commands, "conformance", text, run)


def run(given: argparse.Namespace) -> int:
    """Run the kit. Raises InvalidUsage where it is not installed."""
    try:
        from counterseal_conformance.__main__ import main
    except ModuleNotFoundError as error:
        raise InvalidUsage(
            f"This needs the conformance kit: there is no package {error.name}.",
            next_step="Run `pip install counterseal-conformance`.",
        ) from None
    return main(given.words, "counterseal conformance")
