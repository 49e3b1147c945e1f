"""`manage.py seed_demo`: people, policy and Riley's key for the demo."""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from demo.seed import seed


class Command(BaseCommand):
    help = "Creates the demo's people, policy and agent, and writes $STATE/demo.json."

    def handle(self, *args: Any, **options: Any) -> None:
        """Run it as often as you like: it keeps what is there."""
        path = seed(
            state=settings.COUNTERSEAL.state,
            base_url=settings.COUNTERSEAL.base_url,
            store_url=f"http://127.0.0.1:{os.environ.get('STORE_PORT', '8010')}",
        )
        self.stdout.write(f"Logins and keys are in {path}")
