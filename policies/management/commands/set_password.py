"""Give a person a new password, which ends their sessions and personal tokens."""

from __future__ import annotations

import getpass
import secrets
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from journal.errors import DomainError
from policies import people
from policies.management import lookups

MADE_BYTES = 18  # 24 characters


class Command(BaseCommand):
    help = (
        "Sets a person's password: prompts for it, or reads it from standard input."
        " --generate creates and prints one. Ends the person's sessions and revokes"
        " their tokens."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--by", required=True, help="an administrator's username")
        parser.add_argument("--generate", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        by = lookups.load_person(options["by"])
        who = lookups.load_person(options["username"])
        made = secrets.token_urlsafe(MADE_BYTES) if options["generate"] else ""
        try:
            people.set_password(who, made or read_password(), by=by)
        except DomainError as error:
            raise lookups.to_command_error(error) from error
        self.stdout.write(
            made
            or f"{who.username} has a new password. Sessions ended, tokens revoked."
        )


def read_password() -> str:
    """The password: typed without echo at a terminal, else a line of standard input."""
    if sys.stdin.isatty():
        return getpass.getpass()
    if sys.__stdin__ is None or sys.stdin is not sys.__stdin__:
        return sys.stdin.readline().rstrip("\n")
    # Unbuffered: the lines after it are for the commands after this one.
    with open(sys.__stdin__.fileno(), "rb", buffering=0, closefd=False) as given:
        return given.readline().decode().rstrip("\r\n")
