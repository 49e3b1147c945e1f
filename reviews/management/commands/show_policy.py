"""`counterseal policy show`: the text of a version."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from policies.documents.source import write_source
from policies.management import tables
from policies.models import PolicyVersion
from reviews.presenters import unicode


class Command(BaseCommand):
    help = (
        "Prints the active version of the policy, or the version with this number, as"
        " YAML that `counterseal policy load` takes. Comments are not stored, and what"
        " equals a default is left out."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("number", nargs="?", type=int, metavar="N")
        tables.add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        version = _load_version(options["number"])
        if options["json"]:
            self.stdout.write(tables.format_json(version.document))
            return
        text = write_source(version.document)
        if any(map(unicode.is_hidden, text.replace("\n", ""))):
            text = write_source(version.document, in_ascii=True)
        self.stdout.write(text, ending="")


def _load_version(number: int | None) -> PolicyVersion:
    """Raises CommandError."""
    if number is None:
        active = PolicyVersion.objects.filter(status=PolicyVersion.Status.ACTIVE)
        version = active.first()
        wanted = "No policy is active"
    else:
        version = PolicyVersion.objects.filter(number=number).first()
        wanted = f"There is no version {number}"
    if version is None:
        raise CommandError(f"{wanted}: `counterseal policy list` lists all.")
    return version
