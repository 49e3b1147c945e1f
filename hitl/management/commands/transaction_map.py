"""`manage.py transaction_map > docs/transactions.md`"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from hitl import transaction_map


class Command(BaseCommand):
    help = "Prints what each operation locks and writes, for docs/transactions.md."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(transaction_map.format_page(), ending="")
