"""What the commands share: the agent's gate and the person's, secrets from the keyboard
or standard input, and printing."""

from __future__ import annotations

import argparse
import getpass
import json
import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from ..calls import Backoff, Connection, Flow, quote_path
from ..errors import CountersealError
from ..gate import Gate
from ..people import PeopleOperations
from ..settings import (
    TOKEN_VARIABLE,
    URL_VARIABLE,
    InvalidSettings,
    load_settings,
)
from ..terminal.text import Line, Screen

Value = TypeVar("Value")

IMPATIENT = Backoff(attempts=4)
"""Somebody waits at the terminal: no answer is an error within seconds."""


class InvalidUsage(CountersealError):
    """The words of the command do not fit; the command ends as argparse ends it."""


@dataclass(frozen=True, slots=True)
class PersonSession:
    """One person's connection to the gate."""

    gate: Gate
    people: PeopleOperations

    def run(self, flow: Flow[Value]) -> Value:
        """Run a flow of the people's API to its end."""
        return self.gate.run(flow)


def open_person_session() -> PersonSession:
    """The person's gate of the settings. Raises InvalidSettings."""
    settings = load_settings()
    if not settings.url or not settings.token:
        url = settings.url or "https://gate.example.com"
        raise InvalidSettings(
            "The settings do not say who you are.",
            next_step=f"Make a token at {url}/me/tokens/, then run `counterseal init"
            f" --person`, or set {URL_VARIABLE} and {TOKEN_VARIABLE}.",
        )
    connection = Connection(settings.url, settings.token, IMPATIENT)
    # `Gate` only sends what the flow builds: the agent's key stays out of it.
    gate = Gate(settings.url, "", backoff=IMPATIENT)
    return PersonSession(gate, PeopleOperations(connection))


def read_proposal(gate: Gate, proposal: str) -> dict[str, Any]:
    """The API's own object of a proposal, for `--json`."""
    connection = gate.operations.connection
    call = connection.build_call("GET", quote_path("proposals", proposal))
    found: dict[str, Any] = gate.run(connection.send_call(call))
    return found


def parse_seconds(text: str) -> float:
    """A number of seconds, as an argument's type."""
    seconds = float(text)
    if not math.isfinite(seconds) or seconds < 0:
        raise argparse.ArgumentTypeError("not a number of seconds from 0 on")
    return seconds


def print_json(value: Any) -> None:
    """Print JSON in ASCII: nothing in it can act on a terminal."""
    text = json.dumps(value, indent=2).replace("\x7f", "\\u007f")
    Screen(sys.stdout).print_whole(text)


def read_secret(name: str, advice: Iterable[Line]) -> str:
    """A secret from the keyboard, unseen, or the first line of standard input. Says
    where it comes from if a person must find it. Raises InvalidUsage if there is
    none."""
    asks = sys.stdin.isatty()
    text = "" if asks else sys.stdin.readline().strip()
    if not text:
        Screen(sys.stderr).print_lines(advice)
    if asks:
        text = getpass.getpass(f"{name} (it is not shown): ").strip()
    if not text:
        raise InvalidUsage(
            f"No {name.lower()} was given.",
            next_step="Type it at the prompt, or give it as the first line of standard"
            " input.",
        )
    return text
