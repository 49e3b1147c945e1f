"""`counterseal propose`: propose one action of an agent."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from ...calls import choose_key
from ...errors import ApiError, CountersealError
from ...gate import Gate
from ...models import Proposal, parse_answer
from ...operations import Details
from ...settings import mask_secrets
from ...terminal.text import Line, Screen
from ..outcomes import ExitCode, describe_proposal, find_exit_code
from ..sessions import IMPATIENT, InvalidUsage, parse_seconds, print_json, read_proposal


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "propose",
        help="propose one action",
        description="Propose one action of the agent whose key is set.",
        allow_abbrev=False,
    )
    parser.add_argument("tool", metavar="TOOL")
    parser.add_argument(
        "--args",
        required=True,
        metavar="JSON",
        help="the arguments: a JSON object, @FILE, or - for standard input",
    )
    parser.add_argument(
        "--thread", required=True, metavar="ID", help="the name of the agent's run"
    )
    parser.add_argument(
        "--rationale", default="", help="why, for the people who decide"
    )
    parser.add_argument(
        "--key",
        default="",
        metavar="ID",
        help="the idempotency key: the same key and arguments are the same proposal",
    )
    parser.add_argument(
        "--wait",
        type=parse_seconds,
        default=0.0,
        metavar="SECONDS",
        help="how many seconds to wait for a decision (0: do not wait)",
    )
    parser.add_argument("--json", action="store_true", help="print the API's object")
    parser.set_defaults(run=run, by_person=False)


def run(given: argparse.Namespace) -> ExitCode:
    """Propose, and wait if asked to."""
    if mask_secrets(given.key) != given.key:
        raise InvalidUsage(
            "`--key` is the idempotency key of the proposal, not the agent's key.",
            next_step="Set COUNTERSEAL_KEY, or run `counterseal init`.",
        )
    args = read_arguments(given.args)
    details: Details = {"rationale": given.rationale} if given.rationale else {}
    key = choose_key(given.key)
    with Gate(backoff=IMPATIENT) as gate:
        try:
            proposal = gate.propose(
                given.thread, given.tool, args, idempotency_key=key, **details
            )
        except (CountersealError, KeyboardInterrupt) as error:
            if not isinstance(error, ApiError) or error.status >= 500:
                again = f"The gate may have the proposal: repeat it with --key {key}"
                Screen(sys.stderr).print_line(Line(again, copied=True))
            raise
        if given.wait > 0:
            proposal = wait_for_people(gate, proposal.id, given.wait)
        return show_proposal(gate, proposal, as_json=given.json)


def wait_for_people(gate: Gate, proposal: str, seconds: float) -> Proposal:
    """Wait for the proposal, and say how to go on when the person stops waiting."""
    try:
        return gate.wait(proposal, seconds)
    except KeyboardInterrupt:
        again = f"Nothing is lost. Wait on: counterseal wait {proposal}"
        Screen(sys.stderr).print_line(Line(again, copied=True))
        raise


def show_proposal(gate: Gate, proposal: Proposal, *, as_json: bool) -> ExitCode:
    """Print a proposal in words, or as the API's object."""
    if as_json:
        found = read_proposal(gate, proposal.id)
        print_json(found)
        return find_exit_code(parse_answer(Proposal, found))
    Screen(sys.stdout).print_lines(describe_proposal(proposal))
    return find_exit_code(proposal)


def read_arguments(text: str) -> dict[str, Any]:
    """The arguments of the action. Raises InvalidUsage."""
    text = _read_source(text)
    try:
        found = json.loads(
            text, object_pairs_hook=_build_object, parse_constant=_refuse_constant
        )
        json.dumps(found, ensure_ascii=False).encode()
    except RecursionError as error:
        raise InvalidUsage("--args: the JSON is nested too deeply.") from error
    except UnicodeEncodeError as error:
        raise InvalidUsage("--args: a text contains half a surrogate pair.") from error
    except ValueError as error:
        raise InvalidUsage(
            f"--args: not JSON: {error}.",
            next_step="""Quote it for the shell: --args '{"order_id": "78291"}'.""",
        ) from error
    if not isinstance(found, dict):
        raise InvalidUsage("--args: the arguments are a JSON object: {...}.")
    return found


def _read_source(text: str) -> str:
    if text != "-" and not text.startswith("@"):
        return text
    try:
        return sys.stdin.read() if text == "-" else Path(text[1:]).read_text("utf-8")
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", "") or "it is not UTF-8 text"
        name = "standard input" if text == "-" else text[1:]
        raise InvalidUsage(f"--args: {name} cannot be read: {reason}.") from error


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object contains the same key twice")
    return found


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON number")
