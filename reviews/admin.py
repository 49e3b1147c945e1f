"""The Django admin over the gate's tables, read-only: changes go through operations.

Only staff whose role never decides may open it, because it shows every vote, and a
reviewer must not see other people's votes before the request is settled.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.models import Group
from django.http import HttpRequest

from policies.models import Person

from . import models, permissions


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    actions = None

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        person = request.user
        return (
            isinstance(person, Person)
            and person.is_staff
            and bool(permissions.roles_of(person) & permissions.NEVER_DECIDE)
        )

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


# Groups are the roles: renaming a group would change what its members may do.
admin.site.unregister(Group)
for model in (
    Group,
    models.Alarm,
    models.ApprovalRequest,
    models.Decision,
    models.Execution,
    models.Grant,
    models.LateReport,
    models.Proposal,
    models.RequestVersion,
    models.Revision,
    models.Stop,
):
    admin.site.register(model, ReadOnlyAdmin)
