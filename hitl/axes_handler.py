"""Counts wrong passwords, at sign-in and at step-up alike."""

from __future__ import annotations

from copy import copy
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from django.http import HttpRequest, QueryDict


class Attempts(AxesDatabaseHandler):  # type: ignore[misc]
    """Records the user name, address and count of failed sign-ins, but no form data: a
    step-up form holds a reviewer's note and edited arguments."""

    def user_login_failed(
        self,
        sender: Any,
        credentials: dict[str, Any],
        request: HttpRequest | None = None,
        **kwargs: Any,
    ) -> None:
        bare = copy(request)
        if bare is not None:
            bare.GET = bare.POST = QueryDict()
        super().user_login_failed(sender, credentials, bare, **kwargs)
        if request is not None:  # AxesMiddleware reads these to detect a lockout
            results = {k: v for k, v in vars(bare).items() if k.startswith("axes_")}
            vars(request).update(results)
