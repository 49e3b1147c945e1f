"""`counterseal people list`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from policies.management import tables
from policies.models import Person, Queue
from policies.money import format_money
from reviews import permissions
from reviews.presenters import inert


class Command(BaseCommand):
    help = "Lists the people: roles, queues, ceiling, and whether they may sign in."

    def add_arguments(self, parser: CommandParser) -> None:
        tables.add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        ids = list(
            Person.objects.exclude(username="AnonymousUser")
            .order_by("username")
            .values_list("pk", flat=True)
        )
        people = sorted(
            permissions.list_people_with_roles(ids), key=lambda each: each.username
        )
        queues = dict(Queue.objects.values_list("pk", "name"))
        rows = [_describe_person(person, queues) for person in people]
        empty = "Nobody has an account yet: counterseal setup-link"
        tables.write_rows(self.stdout, rows, in_json=options["json"], empty=empty)


def _describe_person(person: Person, queues: dict[int, str]) -> dict[str, Any]:
    ceiling = format_money(person.ceiling) if person.ceiling else None
    return {
        "user": person.username,
        "name": inert.format_line(person.get_full_name()),
        "roles": sorted(permissions.roles_of(person)),
        "queues": sorted(queues[pk] for pk in permissions.queues_of(person)),
        "ceiling": ceiling,
        "email": inert.format_line(person.email),
        "active": person.is_active,
    }
