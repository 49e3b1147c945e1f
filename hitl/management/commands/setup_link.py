"""`counterseal setup-link`: a link for the first account."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from policies import first_administrator


class Command(BaseCommand):
    help = (
        "Prints a link that makes the first account, an administrator's. It works for a"
        " day, until there is one."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        if first_administrator.has_administrator():
            raise CommandError(
                "an administrator has an account already. Who lost the password gets a"
                " new one with `counterseal people password`"
            )
        path = reverse("reviews:setup", args=[first_administrator.create_token()])
        self.stdout.write(f"{settings.COUNTERSEAL.base_url}{path}")
