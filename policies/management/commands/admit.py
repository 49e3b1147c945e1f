"""Let an existing person decide in more queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandParser

from policies import people
from policies.management import lookups


class Command(BaseCommand):
    help = "Admits a person to queues, so that they can decide as their role allows."
    change: ClassVar[Callable[..., None]] = people.admit_to_queues
    done: ClassVar[str] = "can decide in"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--queue", action="append", dest="queues", metavar="NAME")
        which.add_argument(
            "--all-queues", action="store_true", help=lookups.EVERY_QUEUE
        )
        parser.add_argument("--by", help="an administrator's username, for the log")

    def handle(self, *args: Any, **options: Any) -> None:
        person = lookups.load_person(options["username"])
        every = options["all_queues"]
        queues = lookups.load_queues_by_name(options["queues"] or [], every=every)
        type(self).change(person, queues, by=lookups.load_actor(options["by"]))
        names = ", ".join(queue.name for queue in queues)
        self.stdout.write(f"{person.username} {type(self).done} {names}")
