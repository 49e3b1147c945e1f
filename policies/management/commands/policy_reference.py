"""Print or write docs/policy-reference.md and docs/policy.schema.json
(`manage.py policy_reference --write`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from policies import reference


class Command(BaseCommand):
    help = "Prints the reference of the policy document, or writes it and its schema."

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--write", action="store_true", help="write both into docs/")
        what.add_argument("--schema", action="store_true", help="print the JSON Schema")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["write"]:
            docs = Path(settings.BASE_DIR) / "docs"
            (docs / "policy-reference.md").write_text(reference.render_page(), "utf-8")
            (docs / "policy.schema.json").write_text(reference.render_schema(), "utf-8")
            return
        text = (
            reference.render_schema() if options["schema"] else reference.render_page()
        )
        self.stdout.write(text, ending="")
