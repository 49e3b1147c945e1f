"""`manage.py seed_demo`: people, policy and Riley's key for the demo."""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from demo import seed


class Command(BaseCommand):
    help = "Create the demo's people, policy and agent, and write $STATE/demo.json."

    def handle(self, *args: Any, **options: Any) -> None:
        """Run it again as often as you like: what is there is kept."""
        path = seed.seed(
            state=settings.HOLDPOINT.state,
            base_url=settings.HOLDPOINT.base_url,
            store_url=seed.store_url(os.environ),
        )
        self.stdout.write(f"The logins and keys are in {path}")
