"""What the commands share: whom or what an argument names, and an error in words."""

from __future__ import annotations

from django.core.management.base import CommandError

from journal.errors import FieldError
from policies.models import Person, Queue


def person(username: str) -> Person:
    """Raises CommandError when nobody has this user name."""
    found = Person.objects.filter(username=username).first()
    if found is None:
        raise CommandError(f"Nobody is called {username}.")
    return found


def queue(name: str) -> Queue:
    """Raises CommandError when the policy names no such queue."""
    found = Queue.objects.filter(name=name).first()
    if found is None:
        raise CommandError(f"There is no queue {name}.")
    return found


def describe(error: FieldError) -> str:
    """`line 34: tools.pay.presenter: moeny is not a view; did you mean money?`"""
    line = f"line {error['line']}: " if "line" in error else ""
    path = f"{error['path']}: " if error["path"] else ""
    return f"{line}{path}{error['message']}"
