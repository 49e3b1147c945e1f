"""`counterseal beat`: the clock of the sweeps."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from .worker import become_celery


class Command(BaseCommand):
    help = "Starts each sweep when it is due. One beat is enough; two do no harm."

    def handle(self, *args: Any, **options: Any) -> None:
        become_celery(["beat"])
