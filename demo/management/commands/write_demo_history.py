"""`manage.py write_demo_history`: the thirty days before the demo begins."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from demo.history.writer import write_history
from demo.seed import build_store_url


class Command(BaseCommand):
    help = (
        "Writes thirty days of the store's life into an empty database; changes nothing"
        " in any other."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run it before `seed_demo`, and as often as you like."""
        if write_history(store_url=build_store_url()):
            self.stdout.write("The history is written.")
        else:
            self.stdout.write("There are people or a policy already: nothing is done.")
