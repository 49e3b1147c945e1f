"""Let somebody who is there already decide in more queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError, CommandParser

from journal.log import Actor
from policies import people
from policies.models import Person, Queue


class Command(BaseCommand):
    help = "Lets a person decide in queues, according to their role."
    change: ClassVar[Callable[..., None]] = people.admit

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument(
            "--queue", action="append", required=True, dest="queues", metavar="NAME"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        person = Person.objects.filter(username=options["username"]).first()
        if person is None:
            raise CommandError(f"Nobody is called {options['username']}.")
        queues = [self._queue(name) for name in options["queues"]]
        type(self).change(person, queues, by=Actor("system", "command"))

    def _queue(self, name: str) -> Queue:
        found = Queue.objects.filter(name=name).first()
        if found is None:
            raise CommandError(f"There is no queue {name}.")
        return found
