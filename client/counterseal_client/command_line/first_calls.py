"""What `counterseal init` does with the program of a framework: write it to a file, say
how it is started, and run it until its first call is held."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..gate import Gate
from ..models import Proposal
from ..settings import KEY_VARIABLE, URL_VARIABLE, Settings, write_file
from ..terminal.text import Line, Screen, Style
from .frameworks import Framework
from .outcomes import ExitCode
from .sessions import IMPATIENT, InvalidUsage

POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class Program:
    """A program to write: its text, how it is started and goes on, and what has to be
    done before. `needs` says why it cannot be run at once."""

    text: str
    file: Path
    start: str
    resume: str = ""
    before: Sequence[str] = ()
    needs: str = ""


def build_program(row: Framework, file: Path) -> Program:
    """The program of a framework, for the version that is installed here. Raises
    InvalidUsage for one that is too old."""
    version = row.find_version() if row.package else ""
    if version and row.is_too_old(version):
        raise InvalidUsage(
            f"{row.package} {version} is installed, and the adapter needs"
            f" {row.minimum} or later.",
            next_step=f"Run `{row.install_command}`.",
        )
    name = str(file)
    before = [row.install_command] if version is None or row.is_typescript else []
    before += [row.server] if row.server else []
    before += [row.build_command(row.serve, name)] if row.serve else []
    needs = f"Run `{before[0]}` first." if before else ""
    return Program(
        row.read_program(),
        file,
        row.build_command(row.start, name),
        row.build_command(row.resume, name) if row.resume else "",
        before,
        needs,
    )


def write_program(screen: Screen, program: Program, *, force: bool) -> None:
    """Write the file, and print how to go on. Raises FileExistsError."""
    program.file.parent.mkdir(parents=True, exist_ok=True)
    write_file(program.file, program.text, mode=0o644, replace=force)
    screen.print_line(f"Wrote {program.file}. It runs as it is:")
    screen.print_lines(describe_steps(program))


def describe_steps(program: Program) -> Iterator[Line]:
    """The commands of the first call, in their order."""
    for command in program.before:
        yield Line(command, indent=2, copied=True)
    yield Line(program.start, indent=2, copied=True)
    if program.resume:
        yield Line(program.resume, indent=2, copied=True)


def run_first_call(screen: Screen, settings: Settings, program: Program) -> ExitCode:
    """Start the program, and print where its call waits for a person. Raises
    InvalidUsage for a program that needs something else first."""
    if program.needs:
        raise InvalidUsage("The program cannot run yet.", next_step=program.needs)
    _, *words = shlex.split(program.start)
    with Gate(settings.url, settings.key, backoff=IMPATIENT) as gate:
        known = {proposal.id for proposal in gate.list_page().items}
        environment = {
            **os.environ,
            URL_VARIABLE: settings.url,
            KEY_VARIABLE: settings.key,
        }
        screen.print_line(Line(f"$ {program.start}", style=Style.FAINT, copied=True))
        with subprocess.Popen([sys.executable, *words], env=environment) as process:  # noqa: S603 - the program just written
            held = wait_for_held_call(gate, known, process)
            if held is not None:
                screen.print_lines(describe_held_call(held))
        if process.returncode:
            return ExitCode.ERROR
    if held is None:
        text = "No call was held: the policy lets it pass, or refuses it."
        screen.print_line(Line(text, style=Style.WARNING))
        return ExitCode.ENDED
    if program.resume:
        screen.print_line("Decide there. Then:")
        screen.print_line(Line(program.resume, indent=2, copied=True))
    return ExitCode.DONE


def wait_for_held_call(
    gate: Gate, known: set[str], process: subprocess.Popen[bytes]
) -> Proposal | None:
    """The first proposal that is not among those known; None if the program ends
    without one."""
    while True:
        ended = has_ended(process)
        for proposal in gate.list_page().items:  # even one that is decided already
            if proposal.id not in known:
                return proposal
        if ended:
            return None


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process ends within a moment."""
    try:
        process.wait(POLL_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def describe_held_call(proposal: Proposal) -> Iterator[Line]:
    """What is held, and where a person decides."""
    yield Line(f"Held: {proposal.tool} waits for a person.", style=Style.STRONG)
    if proposal.request is not None:
        yield Line(proposal.request.url, indent=2, copied=True)
