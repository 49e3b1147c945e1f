"""Read-only: nobody edits rows. What must be changed has an operation."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from .models import (
    ApprovalRequest,
    Decision,
    Execution,
    Grant,
    Proposal,
    RequestVersion,
    Revision,
    Stop,
)


class ReadOnly(admin.ModelAdmin):  # type: ignore[type-arg]
    """Lists and shows; adds, changes and deletes nothing."""

    actions = None

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


for model in (
    ApprovalRequest,
    Decision,
    Execution,
    Grant,
    Proposal,
    RequestVersion,
    Revision,
    Stop,
):
    admin.site.register(model, ReadOnly)
