"""The server's part of the command `counterseal`: a table of its commands. Behind each
is a management command of Django.

`manage.py` runs the same commands under Django's names. The client's part, for agents
and for people in a terminal, is `counterseal_client.command_line`.
"""

from __future__ import annotations

import os
import sys
import textwrap
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
from django.utils.module_loading import import_string

from .garbage_collection import suspend_collection
from .local import defaults, layout, preflight
from .local.layout import InstallationError

# Codes of PostgreSQL.
UNDEFINED_TABLE, UNDEFINED_COLUMN = "42P01", "42703"
HELP_WIDTH = 80
NO_GATE = (
    "no gate runs in {state}: start it there with `counterseal up`, or set STATE to the"
    " folder of the gate that runs, which `counterseal up` names in its first line"
)
# Those that run until they are stopped, beside the database of `up`.
PROCESSES = {"serve", "worker", "beat"}
# These check the keys themselves, or come before there is a database.
WITHOUT_KEYS = PROCESSES | {
    "up",
    "migrate",
    "check",
    "rotate_grant_key",
    "accept_key",
}
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
        (
            "counterseal up --solo",
            "counterseal up --demo",
            "PORT=8100 STATE=/srv/gate counterseal up",
        ),
    ),
    "serve": Entry(
        "serve",
        "run one web process",
        (
            "counterseal serve --host 127.0.0.1 --port 8000",
            "PORT=8100 counterseal serve",
        ),
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
    "beat": Entry(
        "beat",
        "run the clock of the sweeps",
        ("counterseal beat", "STATE=/srv/gate counterseal beat"),
    ),
    "migrate": Entry(
        "migrate",
        "bring the database to this release",
        ("counterseal migrate", "counterseal migrate --plan"),
    ),
    "check": Entry(
        "check",
        "check the settings",
        ("counterseal check", "counterseal check --deploy"),
    ),
    "setup-link": Entry(
        "setup_link",
        "print a link for the first account, or to sign in to a gate in solo mode",
        ("counterseal setup-link", "STATE=/srv/gate counterseal setup-link"),
    ),
    "log": {
        "": Entry(
            "read_log",
            "print, search or follow the audit log",
            (
                "counterseal log",
                "counterseal log --follow --kind decision",
                "counterseal log --since 1h --actor rita --json",
                "counterseal log --request r-vt9x9t0wpsjebsdkn6bw",
                "counterseal log --search 'refund 78203'",
            ),
        ),
        "verify": Entry(
            "verify_log",
            "check that the audit log is what was written",
            (
                "counterseal log verify",
                "counterseal log verify --records 1200 --root 5f70bf18a086007016e948b0"
                "4aed3b82103a36bea41755b6cddfaf10ace3c6ef",
            ),
        ),
        "archive": Entry(
            "archive_log",
            "move an old period of the audit log into a file, by two people",
            (
                "counterseal log archive 2026-03 --to /srv/log --by alma"
                ' --reason "older than a year"',
                "counterseal log archive 3 --to /srv/log --by adam --reason confirmed",
            ),
        ),
    },
    "tools": {
        "list": Entry(
            "list_tools",
            "list the tools of the policy, and those that it does not declare",
            ("counterseal tools list", "counterseal tools list --json"),
        ),
        "show": Entry(
            "show_tool",
            "print everything about one tool",
            (
                "counterseal tools show process_refund",
                "counterseal tools show process_refund --json",
            ),
        ),
    },
    "restored": Entry(
        "restored",
        "confirm a restored database, one of two people",
        (
            'counterseal restored --by adam --reason "dump of Monday"',
            "STATE=/srv/gate counterseal restored --by alma --reason monday",
        ),
    ),
    "people": {
        "list": Entry(
            "list_people",
            "list the people, their roles and queues",
            ("counterseal people list", "counterseal people list --json"),
        ),
        "add": Entry(
            "add_person",
            "add a person",
            (
                "counterseal people add rita --email rita@example.com"
                " --role reviewer --all-queues --by adam",
                "counterseal people add sue --email sue@example.com"
                " --role supervisor --queue mail --ceiling 500.00 USD --by adam",
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
            (
                "counterseal people admit rita --queue mail --by adam",
                "counterseal people admit rita --all-queues --by adam",
            ),
        ),
        "dismiss": Entry(
            "dismiss",
            "take queues from a person",
            (
                "counterseal people dismiss rita --queue mail --by adam",
                "counterseal people dismiss rita --all-queues --by adam",
            ),
        ),
        "password": Entry(
            "set_password",
            "give a person a new password",
            (
                "counterseal people password rita --by adam",
                "counterseal people password rita --by adam --generate",
            ),
        ),
        "remove-factor": Entry(
            "remove_factor",
            "let a person in who lost their second factor",
            (
                "counterseal people remove-factor rita --by adam",
                "counterseal people remove-factor sue --by alma",
            ),
        ),
        "deactivate": Entry(
            "deactivate_person",
            "end a person's access",
            (
                "counterseal people deactivate rita --by adam",
                "STATE=/srv/gate counterseal people deactivate rita --by adam",
            ),
        ),
        "reactivate": Entry(
            "reactivate_person",
            "give a person their access back",
            (
                "counterseal people reactivate rita --by adam",
                "STATE=/srv/gate counterseal people reactivate rita --by adam",
            ),
        ),
    },
    "policy": {
        "list": Entry(
            "list_policies",
            "list the versions of the policy",
            ("counterseal policy list", "counterseal policy list --json"),
        ),
        "show": Entry(
            "show_policy",
            "print the active version, or another one",
            ("counterseal policy show", "counterseal policy show 7 > policy.yaml"),
        ),
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
            (
                "counterseal policy try policy.yaml --calls calls.jsonl",
                "counterseal policy try policy.yaml --calls calls.jsonl --json",
            ),
        ),
    },
    "agents": {
        "list": Entry(
            "list_agents",
            "list the agents, their tools and limits",
            ("counterseal agents list", "counterseal agents list --json"),
        ),
        "show": Entry(
            "show_agent",
            "print one agent, and what is left of its limits",
            ("counterseal agents show ada", "counterseal agents show ada --json"),
        ),
        "register": Entry(
            "register_agent",
            "register an agent, and print its key once",
            (
                "counterseal agents register ada --owner owen --by adam"
                " --tool 'files_*'",
                "counterseal agents register ada --owner owen --by adam"
                " --tool look_up_order --risk-ceiling medium",
            ),
        ),
        "change": Entry(
            "change_agent",
            "change an agent's tools, risk ceiling, limits or owner",
            (
                "counterseal agents change ada --by adam --add-tool look_up_order"
                " --reason 'reads orders'",
                "counterseal agents change ada --by adam --daily-proposals 200"
                " --daily-money '500.00 USD'",
            ),
        ),
        "release": Entry(
            "release_agent",
            "say that an agent's program, prompts or model changed",
            (
                "counterseal agents release ada 2026.11 --by adam",
                "counterseal agents release ada 5f70bf1 --by owen",
            ),
        ),
        "keys": Entry(
            "list_agent_keys",
            "list an agent's keys",
            (
                "counterseal agents keys ada",
                "STATE=/srv/gate counterseal agents keys ada",
            ),
        ),
        "rotate-key": Entry(
            "rotate_agent_key",
            "give an agent one more key, and print it once",
            (
                "counterseal agents rotate-key ada --by adam",
                "counterseal agents rotate-key ada --by adam --days 90",
            ),
        ),
        "revoke-key": Entry(
            "revoke_agent_key",
            "revoke a key",
            (
                "counterseal agents revoke-key ada cs_k7xw2m9q --by adam",
                "counterseal agents revoke-key ada cs_k7xw2m9q --by owen",
            ),
        ),
        "endpoint": Entry(
            "register_endpoint",
            "register an agent's webhook, and print its secret once",
            (
                "counterseal agents endpoint ada https://ada.example/hook --by adam",
                "counterseal agents endpoint ada https://ada.example/hook --by owen",
            ),
        ),
    },
    "keys": {
        "rotate": Entry(
            "rotate_keys",
            "encrypt every stored value under the present DATA_KEY",
            (
                "counterseal keys rotate",
                "STATE=/srv/gate counterseal keys rotate",
            ),
        ),
        "accept": Entry(
            "accept_key",
            "use a new key that signs, and no longer the former one, after a leak",
            (
                "counterseal keys accept GRANT_KEY",
                "counterseal keys accept SECRET_KEY",
            ),
        ),
        "rotate-grant": Entry(
            "rotate_grant_key",
            "rotate the key that signs grants, in three steps",
            (
                "counterseal keys rotate-grant publish",
                "counterseal keys rotate-grant sign",
            ),
        ),
    },
}


def prepare_environment(arguments: Sequence[str] = ()) -> None:
    """Set what every command needs before Django starts. A private installation is the
    default where nothing is set that belongs to another one. Only `up`, and a command
    with `DEPLOYMENT=local`, write keys.

    Raises InstallationError.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hitl.settings")
    if "--solo" in arguments:
        os.environ["SOLO"] = "1"
    elif "up" in arguments[:1]:  # other commands are in the mode of the gate that runs
        os.environ.setdefault("SOLO", "0")
    defaults.check_deployment(os.environ)
    writes_keys = "up" in arguments[:1] or "DEPLOYMENT" in os.environ
    if os.environ.setdefault("DEPLOYMENT", "local") == "local":
        defaults.fill_environment(os.environ, writes_keys=writes_keys)


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
    # During `migrate` it is a fault of a migration.
    if code in {UNDEFINED_TABLE, UNDEFINED_COLUMN} and sys.argv[1:2] != ["migrate"]:
        return "the database is of another release: run `counterseal migrate`"
    if code is not None:  # a server answered, and it is not known what to do
        raise error
    if defaults.is_private(os.environ):
        return NO_GATE.format(state=settings.COUNTERSEAL.state)
    reason = str(error).strip().partition("\n")[0]
    return (
        f"DATABASE_URL: the database does not answer ({reason}): start it, or correct"
        " the address"
    )


def check_gate_runs(entry: Entry) -> None:
    """Raise InstallationError for a process of a private gate that nobody started: it
    would wait for a database for ever."""
    if entry.name not in PROCESSES or not defaults.is_private(os.environ):
        return
    state = settings.COUNTERSEAL.state
    if not preflight.is_locked(layout.build_layout(state)):
        raise InstallationError(NO_GATE.format(state=state))


def main(arguments: Sequence[str]) -> int:
    """Run one command."""
    with explain_errors():
        words, entry, rest = find_entry(arguments)
        prepare_environment(arguments)
        with suspend_collection():
            django.setup()
        check_gate_runs(entry)
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
    if "" in entry and (not verb or verb.startswith("-")):
        return name, entry[""], rest
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
        f"  {prefix}{name:<{width}}  {_describe(entry)}".rstrip()
        for name, entry in commands.items()
    ]


def _describe(entry: Entry | Mapping[str, Entry]) -> str:
    if isinstance(entry, Entry):
        return entry.purpose
    verbs = ", ".join(filter(None, entry))
    return f"{entry[''].purpose}, or {verbs}" if "" in entry else verbs


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
    parser.description = textwrap.fill(command.help, HELP_WIDTH)
    return command, parser


def run_command(words: str, entry: Entry, arguments: Sequence[str]) -> None:
    """Run Django's command with these arguments. Raises CommandError."""
    command, parser = build_parser(words, entry)
    options: dict[str, Any] = vars(parser.parse_args(list(arguments)))
    if entry.name not in WITHOUT_KEYS:
        # It needs models, which can be imported only now.
        import_string("hitl.checks.check_known_keys")()
    command.execute(*options.pop("args", ()), **options)
