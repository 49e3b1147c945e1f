"""The server's part of the command `counterseal`: a table of its commands. Behind each
is a management command of Django.

`manage.py` runs the same commands under Django's names. The client's part, for agents
and for people in a terminal, is `counterseal_client.command_line`.
"""

from __future__ import annotations

import os
import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import django
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, get_commands, load_command_class
from django.core.management.base import BaseCommand, CommandParser
from django.db import DatabaseError

from .garbage_collection import suspend_collection
from .local import defaults
from .local.layout import InstallationError

# Codes of PostgreSQL.
UNDEFINED_TABLE, UNDEFINED_COLUMN = "42P01", "42703"
# What Django offers every command and nobody who runs a gate needs.
HIDDEN_OPTIONS = {
    "--force-color",
    "--no-color",
    "--pythonpath",
    "--settings",
    "--traceback",
    "--verbosity",
    "--version",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One command: the name of Django's command behind it, one line for the list of
    commands, and examples for its own help."""

    name: str
    purpose: str
    examples: tuple[str, ...] = ()


COMMANDS: Mapping[str, Entry | Mapping[str, Entry]] = {
    "up": Entry(
        "up",
        "run a whole gate on this machine, with its own database and broker",
        ("counterseal up --demo", "PORT=8100 STATE=/srv/gate counterseal up"),
    ),
    "serve": Entry(
        "serve",
        "run one web process",
        ("counterseal serve --host 127.0.0.1 --port 8000",),
    ),
    "worker": Entry(
        "worker",
        "run one worker: effects, messages, look-ups",
        (
            "counterseal worker --concurrency 4",
            "counterseal worker --beat",
            "counterseal worker --queues effects,celery",
        ),
    ),
    "beat": Entry("beat", "run the clock of the sweeps", ("counterseal beat",)),
    "migrate": Entry(
        "migrate", "bring the database to this release", ("counterseal migrate",)
    ),
    "check": Entry("check", "check the settings", ("counterseal check --deploy",)),
    "setup-link": Entry(
        "setup_link",
        "print a link for the first account, an administrator's",
        ("counterseal setup-link",),
    ),
    "restored": Entry(
        "restored",
        "confirm a restored database, one of two people",
        ('counterseal restored --by adam --reason "dump of Monday"',),
    ),
    "people": {
        "add": Entry(
            "add_person",
            "add a person",
            (
                "counterseal people add rita --email rita@example.com"
                " --role reviewer --all-queues --by adam",
            ),
        ),
        "change": Entry(
            "change_person",
            "change a person's role, ceiling or e-mail address",
            (
                "counterseal people change rita --by adam --role supervisor",
                "counterseal people change rita --by adam --ceiling 500.00 USD",
            ),
        ),
        "admit": Entry(
            "admit",
            "admit a person to queues",
            ("counterseal people admit rita --queue mail --by adam",),
        ),
        "dismiss": Entry(
            "dismiss",
            "take queues from a person",
            ("counterseal people dismiss rita --queue mail --by adam",),
        ),
        "password": Entry(
            "set_password",
            "give a person a new password",
            ("counterseal people password rita --by adam --generate",),
        ),
        "deactivate": Entry(
            "deactivate_person",
            "end a person's access",
            ("counterseal people deactivate rita --by adam",),
        ),
        "reactivate": Entry(
            "reactivate_person",
            "give a person their access back",
            ("counterseal people reactivate rita --by adam",),
        ),
    },
    "policy": {
        "load": Entry(
            "load_policy",
            "save a policy as a draft, or activate a draft",
            (
                "counterseal policy load --by adam --file policy.yaml",
                "counterseal policy load --by alma --activate 7",
            ),
        ),
        "try": Entry(
            "try_policy",
            "print what a policy says about calls",
            ("counterseal policy try policy.yaml --calls calls.jsonl",),
        ),
    },
    "agents": {
        "register": Entry(
            "register_agent",
            "register an agent, and print its key once",
            (
                "counterseal agents register ada --owner owen --by adam"
                " --tool 'files_*'",
            ),
        ),
        "change": Entry(
            "change_agent",
            "change an agent's tools, risk ceiling or owner",
            (
                "counterseal agents change ada --by adam --add-tool look_up_order",
                "counterseal agents change ada --by adam --risk-ceiling medium",
            ),
        ),
        "release": Entry(
            "release_agent",
            "say that an agent's program, prompts or model changed",
            ("counterseal agents release ada 2026.11 --by adam",),
        ),
        "keys": Entry(
            "list_agent_keys",
            "list an agent's keys",
            ("counterseal agents keys ada",),
        ),
        "rotate-key": Entry(
            "rotate_agent_key",
            "give an agent one more key, and print it once",
            ("counterseal agents rotate-key ada --by adam --days 90",),
        ),
        "revoke-key": Entry(
            "revoke_agent_key",
            "revoke a key",
            ("counterseal agents revoke-key ada cs_k7xw2m9q --by adam",),
        ),
        "endpoint": Entry(
            "register_endpoint",
            "register an agent's webhook, and print its secret once",
            ("counterseal agents endpoint ada https://ada.example/hook --by adam",),
        ),
    },
    "keys": {
        "rotate-grant": Entry(
            "rotate_grant_key",
            "rotate the key that signs grants, in three steps",
            ("counterseal keys rotate-grant publish",),
        ),
    },
}


def prepare_environment() -> None:
    """Set what every command needs before Django starts. A private installation is the
    default; `DEPLOYMENT` or the addresses in the environment say otherwise.

    Raises InstallationError.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hitl.settings")
    if os.environ.setdefault("DEPLOYMENT", "local") == "local":
        defaults.fill_environment(os.environ)


@contextmanager
def explain_errors() -> Iterator[None]:
    """End the process with one line for every error that a person can mend."""
    try:
        yield
    except (CommandError, ImproperlyConfigured, InstallationError) as error:
        text, code = str(error), getattr(error, "returncode", 1)
    except DatabaseError as error:
        text, code = describe_unusable_database(error), 1
    else:
        return
    sys.stderr.write(f"counterseal: {text}\n")
    raise SystemExit(code)


def describe_unusable_database(error: DatabaseError) -> str:
    """What is wrong with the database, and what to do. *Raises* the error when it is
    neither away nor of another release."""
    code = getattr(error.__cause__, "sqlstate", None)
    if code in {UNDEFINED_TABLE, UNDEFINED_COLUMN}:
        return "the database is of another release: run `counterseal migrate`"
    if code is not None:  # a server answered, and it is not known what to do
        raise error
    if settings.COUNTERSEAL.local:
        return (
            f"no gate runs in {settings.COUNTERSEAL.state}: start it there with"
            " `counterseal up`, or set STATE to the folder of the gate that runs,"
            " which `counterseal up` names in its first line"
        )
    reason = str(error).strip().partition("\n")[0]
    return f"DATABASE_URL: the database does not answer ({reason})"


def main(arguments: Sequence[str]) -> int:
    """Run one command."""
    with explain_errors():
        words, entry, rest = find_entry(arguments)
        prepare_environment()
        with suspend_collection():
            django.setup()
        run_command(words, entry, rest)
    return 0


def find_entry(arguments: Sequence[str]) -> tuple[str, Entry, Sequence[str]]:
    """The words of the command, its entry, and what is left for it. Prints the commands
    of a group that is named alone. Raises CommandError."""
    name, *rest = arguments
    entry = COMMANDS[name]
    if isinstance(entry, Entry):
        return name, entry, rest
    verb = rest[0] if rest else ""
    if verb not in entry:
        listing = "\n".join(describe_commands(entry, f"counterseal {name} "))
        if verb in {"", "-h", "--help"}:
            sys.stdout.write(f"{listing}\n")
            raise SystemExit(0 if verb else 2)
        raise CommandError(
            f"there is no command `{name} {verb}`. These are:\n{listing}", returncode=2
        )
    return f"{name} {verb}", entry[verb], rest[1:]


def describe_commands(
    commands: Mapping[str, Entry | Mapping[str, Entry]], prefix: str = ""
) -> list[str]:
    """One line for each command: its name and its purpose."""
    width = max(map(len, commands))
    return [
        f"  {prefix}{name:<{width}}  {_describe(entry)}"
        for name, entry in commands.items()
    ]


def _describe(entry: Entry | Mapping[str, Entry]) -> str:
    return entry.purpose if isinstance(entry, Entry) else ", ".join(entry)


def build_parser(words: str, entry: Entry) -> tuple[BaseCommand, CommandParser]:
    """Django's command of this entry, and its parser under the name that people
    type."""
    command = load_command_class(get_commands()[entry.name], entry.name)
    command.suppressed_base_arguments = HIDDEN_OPTIONS
    examples = "\n".join(f"  {example}" for example in entry.examples)
    parser = command.create_parser(
        "counterseal",
        words,
        epilog=f"Examples:\n{examples}",
        formatter_class=RawDescriptionHelpFormatter,
    )
    return command, parser


def run_command(words: str, entry: Entry, arguments: Sequence[str]) -> None:
    """Run Django's command with these arguments. Raises CommandError."""
    command, parser = build_parser(words, entry)
    options: dict[str, Any] = vars(parser.parse_args(list(arguments)))
    command.execute(*options.pop("args", ()), **options)
