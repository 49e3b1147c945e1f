"""Let somebody who is there already decide in more queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandParser

from journal.log import Actor
from policies import people
from policies.management import lookups


class Command(BaseCommand):
    help = "Lets a person decide in queues, according to their role."
    change: ClassVar[Callable[..., None]] = people.admit

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument(
            "--queue", action="append", required=True, dest="queues", metavar="NAME"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        person = lookups.person(options["username"])
        queues = [lookups.queue(name) for name in options["queues"]]
        type(self).change(person, queues, by=Actor("system", "command"))
