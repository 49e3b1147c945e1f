"""`manage.py state_diagram > docs/states.md`"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from hitl import state_diagram


class Command(BaseCommand):
    help = "Prints the state machines as Mermaid, for docs/states.md."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(state_diagram.format_page(), ending="")
