"""The checks of `counterseal doctor` that need no more than this client: versions, the
settings, and the gate that they name, over HTTP."""

from __future__ import annotations

import json
import os
import platform
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import StrEnum
from importlib import metadata

from ..calls import Backoff, Connection, Flow, HttpAnswer, HttpCall
from ..errors import ApiError, CountersealError, Unreachable
from ..gate import Gate
from ..people import PeopleOperations
from ..settings import (
    URL_VARIABLE,
    InvalidSettings,
    Settings,
    find_running_file,
    find_settings_file,
    is_encrypted,
    load_file,
    load_settings,
)
from ..version import __version__
from . import server_commands

ONCE = Backoff(attempts=1)
MOST_SKEW_S = 30.0
COMMAND = re.compile(r"`([^`]+)`")
SERVER = "counterseal-server"
HERE = "counterseal up --solo"
NO_GATE = "no settings name one for agents here"


class Level(StrEnum):
    """How good a finding is."""

    OK = "ok"
    WARN = "warn"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what it is about, its level, what holds, and a command that mends
    it."""

    subject: str
    level: Level
    text: str
    repair: str = ""


def check_client() -> Iterator[Finding]:
    """The versions, and what the settings and the gate in them say."""
    yield Finding("Client", Level.OK, f"{__version__}, Python {_find_python()}")
    yield _check_server()
    try:
        settings = load_settings()
    except InvalidSettings as error:
        yield Finding("Settings", Level.WRONG, *_split_step(error))
        return
    if not settings.url:
        installed = server_commands.is_installed()
        repair = HERE if installed else f"pip install counterseal && {HERE}"
        yield Finding("Gate", Level.WRONG, NO_GATE, repair)
        return
    yield _describe_source(settings)
    with Gate(settings.url, settings.key, backoff=ONCE) as gate:
        yield from check_gate(gate, settings)


def _find_python() -> str:
    return f"{platform.python_version()} on {platform.system()}"


def _check_server() -> Finding:
    if not server_commands.is_installed():
        text = "not installed: this machine has the client alone"
        return Finding("Server", Level.OK, text)
    try:
        version = metadata.version(SERVER)
    except metadata.PackageNotFoundError:
        return Finding("Server", Level.OK, f"{__version__}, a copy of the repository")
    if version != __version__:
        text = f"{version}, and the client is {__version__}"
        repair = f"pip install counterseal=={version}"
        return Finding("Server", Level.WRONG, text, repair)
    return Finding("Server", Level.OK, version)


def _split_step(error: CountersealError) -> tuple[str, str]:
    """What is wrong, and the first command of what to do about it."""
    text, step = str(error), error.next_step
    command = COMMAND.search(step)
    return text.removesuffix(step).strip(), command[1] if command else HERE


def _describe_source(settings: Settings) -> Finding:
    if os.environ.get(URL_VARIABLE, "").strip():
        source = f"from {URL_VARIABLE}"
    elif load_file(find_settings_file()).url:
        source = f"from {find_settings_file()}"
    else:
        source = f"which `counterseal up` runs ({find_running_file()})"
    text = f"{settings.url}, {source}"
    if is_encrypted(settings.url):
        return Finding("Gate", Level.OK, text)
    return Finding(
        "Gate",
        Level.WARN,
        f"{text}: without https:// anyone on the network path can read the key",
        f"counterseal init {settings.url.replace('http://', 'https://', 1)}",
    )


def check_gate(gate: Gate, settings: Settings) -> Iterator[Finding]:
    """Whether the gate answers, what it says of its services, and who we are to it."""
    connection = Connection(settings.url, settings.key, ONCE)
    began = time.time()
    try:
        answer = gate.run(_send(connection.build_public_call("/readyz")))
    except Unreachable as error:
        text = f"nothing answers at {settings.url} ({_find_reason(error)})"
        yield Finding("Answer", Level.WRONG, text, _choose_repair(settings))
        return
    ended = time.time()
    yield from _check_services(answer, settings)
    yield from _check_clock(answer, began, ended)
    yield from _check_key(gate, settings)
    yield from _check_token(gate, settings)


def _send(call: HttpCall) -> Flow[HttpAnswer]:
    answer: HttpAnswer = yield call
    return answer


def _find_reason(error: Unreachable) -> str:
    text = str(error).removesuffix(error.next_step).strip()
    return text.rpartition(": ")[2].rstrip(".")


def _choose_repair(settings: Settings) -> str:
    """The gate of this machine is started here, another one is named anew."""
    local = settings.url == load_file(find_running_file()).url
    if server_commands.is_installed() and (local or "127.0.0.1" in settings.url):
        return HERE
    return f"curl -sS {settings.url}/livez"


def _check_services(answer: HttpAnswer, settings: Settings) -> Iterator[Finding]:
    try:
        services = json.loads(answer.content)
        status = services["status"]
        faults = {
            name: text
            for name, text in services.items()
            if name != "status" and text != "ok"
        }
    except (ValueError, TypeError, KeyError):
        text = f"what answers at {settings.url} is not a Counterseal gate"
        yield Finding("Answer", Level.WRONG, text, f"curl -sS {settings.url}/livez")
        return
    if not faults and status == "ok":
        yield Finding("Answer", Level.OK, "it answers, and its services work")
    elif not faults:
        text = f"it answers with status {status}"
        yield Finding("Answer", Level.WARN, text, f"curl -sS {settings.url}/readyz")
    for name, text in faults.items():
        repair = f"curl -sS {settings.url}/readyz"
        level = Level.WRONG if answer.status >= 500 else Level.WARN
        yield Finding("Answer", level, f"the gate's {name}: {text}", repair)


def _check_clock(answer: HttpAnswer, began: float, ended: float) -> Iterator[Finding]:
    try:
        there = parsedate_to_datetime(answer.headers.get("date", "")).timestamp()
    except ValueError:  # a proxy left it out
        return
    # A date has whole seconds, rounded down.
    skew = max(began - there - 1, there - ended, 0.0)
    if skew > MOST_SKEW_S:
        text = f"this machine and the gate differ by {skew:.0f} s"
        repair = "sudo timedatectl set-ntp true"
        yield Finding("Clock", Level.WARN, text, repair)
    else:
        yield Finding("Clock", Level.OK, "this machine and the gate agree")


def _check_key(gate: Gate, settings: Settings) -> Iterator[Finding]:
    if not settings.key:
        level = Level.OK if settings.token else Level.WRONG
        repair = "" if settings.token else f"counterseal init {settings.url}"
        yield Finding("Key", level, "none: no agent of yours can propose", repair)
        return
    try:
        agent = gate.whoami()
        tools = gate.tools()
    except ApiError as error:
        text = f"the gate refuses it: {error.detail} ({error.status} {error.code})"
        repair = f"counterseal init {settings.url} --new-key"
        yield Finding("Key", Level.WRONG, text, repair)
        return
    except Unreachable as error:
        yield Finding("Key", Level.WRONG, _find_reason(error), "counterseal doctor")
        return
    text = f"agent {agent.agent} is {agent.state}, risk up to {agent.risk_ceiling}"
    level = Level.OK if agent.state == "running" else Level.WARN
    repair = "" if level is Level.OK else f"curl -sS {settings.url}/livez"
    yield Finding("Key", level, text, repair)
    asked = sum(tool.tier not in ("auto", "notify") for tool in tools)
    text = f"in force for this agent: {len(tools)} tools, {asked} of them ask people"
    yield Finding("Policy", Level.OK, text)


def _check_token(gate: Gate, settings: Settings) -> Iterator[Finding]:
    if not settings.token:
        return
    people = PeopleOperations(Connection(settings.url, settings.token, ONCE))
    try:
        waiting = gate.run(people.list_requests())
    except (ApiError, Unreachable) as error:
        text = f"the person's token does not work: {type(error).__name__}"
        repair = "counterseal init --person --new-key"
        yield Finding("Token", Level.WRONG, text, repair)
    else:
        text = f"a person's, who sees {len(waiting)} requests"
        yield Finding("Token", Level.OK, text)
