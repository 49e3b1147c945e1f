"""`manage.py seed_demo`: people, policy and Riley's key for the demo."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from demo.seed import build_store_url, seed


class Command(BaseCommand):
    help = "Creates the demo's people, policy and agent, and writes $STATE/demo.json."

    def handle(self, *args: Any, **options: Any) -> None:
        """Run it as often as you like: it keeps what is there."""
        path = seed(
            state=settings.COUNTERSEAL.state,
            base_url=settings.COUNTERSEAL.base_url,
            store_url=build_store_url(),
        )
        self.stdout.write(f"Logins and keys are in {path}")
