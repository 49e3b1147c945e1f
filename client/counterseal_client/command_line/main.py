"""The entry point of `counterseal`: finds the subcommand, and turns every error into
one line and an exit code."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from ..errors import ApiError, CountersealError, Unreachable, format_errors
from ..settings import mask_secrets
from ..terminal.text import Line, Screen, Style, escape_text
from ..version import __version__
from . import commands, server_commands
from .examples import EXAMPLES, HelpFormatter, format_examples
from .outcomes import ExitCode
from .sessions import InvalidUsage

DESCRIPTION = "Propose actions to a Counterseal gate, and decide what waits for you."
EPILOG = """\
The address and the secrets come from COUNTERSEAL_URL, COUNTERSEAL_KEY (an agent's key)
and COUNTERSEAL_TOKEN (a person's token), or from the file that `counterseal init`
writes.

Exit codes: 0 done, 1 error, 2 usage, 3 still waiting, 4 ended without the effect,
5 decide on the page, 6 changed since it was shown, 7 outcome unknown."""

AGENT_STEPS: Mapping[str, str] = {
    "bad_key": "Then run `counterseal init --new-key`, or set COUNTERSEAL_KEY.",
}
"""What somebody at a terminal does about a refusal, where a program would do something
else."""

PEOPLE_STEPS: Mapping[str, str] = {
    "bad_key": "A person makes a new token at /me/tokens/ of the gate, then runs"
    " `counterseal init --person --new-key`.",
    "not_found": "Check the id with `counterseal review`: you see only what you may"
    " see.",
    "throttle": "Wait a moment, then decide again.",
    "verifier": "Read the request again, and decide on its page.",
    "reason": "Give a reason with `--reason`, and a code with `--code`.",
}
"""The same for a person who decides; the steps of an agent are not theirs."""


class CommandParser(argparse.ArgumentParser):
    """A parser that never repeats a secret, nor anything that acts on a terminal."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and the error, and exit with 2."""
        self.print_usage(sys.stderr)
        text = escape_text(mask_secrets(message))
        self.exit(ExitCode.USAGE, f"{self.prog}: error: {text}\n")


def build_parser() -> CommandParser:
    """The parser of every command in `commands`."""
    parser = CommandParser(
        prog="counterseal",
        description=DESCRIPTION,
        epilog=f"{server_commands.describe_server_commands()}{EPILOG}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version", action="version", version=f"%(prog)s {__version__}"
    )
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for found in pkgutil.iter_modules(commands.__path__):
        module = importlib.import_module(f"{commands.__name__}.{found.name}")
        module.add_parser(subparsers)
    for name, command in subparsers.choices.items():
        command.formatter_class = HelpFormatter
        command.epilog = format_examples(EXAMPLES[name])
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not server_commands.has_command(arguments):
        return run_client_command(arguments)
    if server_commands.is_installed():
        return server_commands.run_server_command(arguments)
    print_error(
        f"`counterseal {arguments[0]}` needs the server, and this is the client. Run"
        " `pip install counterseal`."
    )
    return ExitCode.USAGE


def run_client_command(arguments: Sequence[str]) -> int:
    """Run a command of the client."""
    try:
        given = build_parser().parse_args(arguments)
        code: int = given.run(given)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print_error("Interrupted.")
        return ExitCode.INTERRUPTED
    except InvalidUsage as error:
        print_error(str(error))
        return ExitCode.USAGE
    except UnicodeError:
        print_error("The input is not text in the encoding of this terminal.")
        return ExitCode.USAGE
    except ApiError as error:
        by_person = getattr(given, "by_person", False)
        print_error(describe_refusal(error, by_person=by_person))
        return ExitCode.ERROR
    except Unreachable as error:
        happened = str(error).removesuffix(error.next_step)
        print_error(f"{happened}Check that the gate runs, then repeat the command.")
        return ExitCode.ERROR
    except BrokenPipeError:
        # The reader of a pipe has enough; Python would complain once more at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.ERROR
    except (CountersealError, OSError, EOFError) as error:
        print_error(str(error) or "The input ended.")
        return ExitCode.ERROR
    return code


def print_error(text: str) -> None:
    """Print an error to standard error, without any secret."""
    line = Line(f"Error: {mask_secrets(text)}", style=Style.WARNING)
    Screen(sys.stderr).print_line(line)


def describe_refusal(error: ApiError, *, by_person: bool) -> str:
    """A refusal as a sentence: what the gate says, the fields, what to do next."""
    step = AGENT_STEPS.get(error.code, error.next_step)
    if by_person:
        step = PEOPLE_STEPS.get(error.code, "")
    if error.retry_after:
        step = f"Wait for {error.retry_after:.0f} seconds. {step}".strip()
    fields = f"{format_errors(error.errors)}." if error.errors else ""
    detail = error.detail.replace(" See `errors` for details.", "")
    said = " ".join(text for text in (detail, fields, step) if text)
    return f"{said} ({error.status} {error.code})"
