from __future__ import annotations

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in


class PoliciesConfig(AppConfig):
    name = "policies"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect what follows a sign-in."""
        from .sign_ins import record_sign_in  # models exist from now on

        user_logged_in.connect(record_sign_in, dispatch_uid="policies.sign_ins")
