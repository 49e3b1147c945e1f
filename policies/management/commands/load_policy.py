"""Save a policy document as a draft, or activate a draft."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from journal.errors import DomainError
from policies import versions
from policies.management import lookups
from policies.models import Person, PolicyVersion


class Command(BaseCommand):
    help = (
        "Saves FILE as the next version of the policy, or activates version N. Another"
        " administrator must activate it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--by", required=True, help="an administrator's username")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--file", type=Path)
        what.add_argument("--activate", type=int, metavar="N")
        parser.add_argument(
            "--set", action="append", default=[], metavar="NAME=VALUE", dest="variables"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        by = lookups.load_person(options["by"])
        try:
            version = self._do(by, options)
        except PolicyVersion.DoesNotExist:
            raise CommandError(f"There is no version {options['activate']}.") from None
        except DomainError as error:
            raise lookups.to_command_error(error) from error
        self.stdout.write(f"policy v{version.number} is {version.status}")

    def _do(self, by: Person, options: dict[str, Any]) -> PolicyVersion:
        if options["file"]:
            variables = dict(pair.split("=", 1) for pair in options["variables"])
            text = options["file"].read_text()
            return versions.save_draft(
                text_or_mapping=text, author=by, variables=variables
            )
        draft = PolicyVersion.objects.get(number=options["activate"])
        return versions.activate_version(version_id=draft.pk, by=by)
