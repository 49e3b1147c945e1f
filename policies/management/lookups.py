"""Whom or what an argument of a command names."""

from __future__ import annotations

from django.core.management.base import CommandError

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
