"""Helpers of the management commands: load what an argument names, and turn errors
into CommandErrors."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.management.base import CommandError

from journal.errors import DomainError, FieldError
from journal.log import Actor
from policies import active, money, people, versions
from policies.models import Person, Queue

EVERY_QUEUE = (
    "every queue of the active policy, or of the newest draft until there is one"
)


def load_person(username: str) -> Person:
    """The person with this username. Raises CommandError when there is none."""
    person = Person.objects.filter(username=username).first()
    if person is None:
        raise CommandError(f"There is no user {username}.")
    return person


def describe_field_error(error: FieldError) -> str:
    """One line of text, such as `line 34: tools.pay.presenter: moeny is not a view; did
    you mean money?`"""
    line = f"line {error['line']}: " if "line" in error else ""
    path = f"{error['path']}: " if error["path"] else ""
    return f"{line}{path}{error['message']}"


def load_queues_by_name(names: Sequence[str], *, every: bool) -> list[Queue]:
    """The queues with these names, of the active policy or of a draft, or `every` queue
    of the active policy; until there is one, of the newest draft. Raises
    CommandError."""
    if not every:
        queues = versions.prepare_queues(names=names)
        for name in sorted(set(names) - {queue.name for queue in queues}):
            raise CommandError(f"There is no queue {name}, and no draft has one.")
        return queues
    policy = active.find_active_policy() or versions.find_newest_draft()
    if policy is None:
        raise CommandError(
            "No policy is saved, so there are no queues. Save one first: counterseal"
            " policy load --by ADMINISTRATOR --file policy.yaml"
        )
    return versions.prepare_queues(names=active.load_document(policy).queues)


def parse_ceiling(given: list[str] | None) -> money.Money | None:
    """The money of an option with two values, amount and currency; None where it is not
    given. Raises CommandError."""
    if not given:
        return None
    try:
        return money.parse(*given)
    except ValueError as error:
        raise CommandError(f"--ceiling: {error}") from None


def load_actor(username: str | None) -> Actor:
    """The administrator who acts, for the log. Without a username it is the system:
    the first administrator has to be added before there is one. Raises CommandError."""
    if not username:
        return Actor("system", "command")
    by = load_person(username)
    try:
        people.check_administrator(by)
    except DomainError as error:
        raise to_command_error(error) from None
    return people.build_actor(by)


def to_command_error(error: DomainError) -> CommandError:
    """The error as a CommandError, with a line for each field that is wrong."""
    wrong = [f"  {describe_field_error(entry)}" for entry in error.errors]
    return CommandError("\n".join([error.detail, *wrong]))
