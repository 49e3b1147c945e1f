"""The admin site: read by staff who never decide, written by nobody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.test import Client, RequestFactory
from django.urls import NoReverseMatch, reverse

from policies.choices import Role
from policies.models import Person
from tests import factories
from tests.security import routes
from tests.security.world import BACKEND, PEOPLE, World, changed, digests

ACTIONS = {"action": "delete_selected", "_selected_action": "1", "post": "yes"}


def staff(name: str, role: Role) -> Client:
    """A superuser with a role; the strongest that the admin site knows."""
    person = factories.person(name, role, is_staff=True, is_superuser=True)
    client = Client(raise_request_exception=False)
    client.force_login(person, BACKEND)
    return client


def paths() -> Iterator[str]:
    """Every page of every registered model, with a row that is there."""
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        row = model._default_manager.first()
        for page in ("changelist", "add"):
            yield reverse(f"{name}_{page}")
        if row is not None:
            for page in ("change", "delete", "history"):
                yield reverse(f"{name}_{page}", args=[row.pk])


def test_staff_who_never_decide_read_every_list(world: World) -> None:
    client = staff("ada", Role.ADMINISTRATOR)
    for path in paths():
        page = path.rstrip("/").rsplit("/", 1)[1]
        expected = {403} if page in {"add", "delete"} else {200}
        assert client.get(path).status_code in expected, path
    assert client.get(reverse("admin:index")).status_code == 200


def test_staff_write_nothing(world: World) -> None:
    client = staff("ada", Role.ADMINISTRATOR)
    before, sent = digests(log=True), 0
    for path in paths():
        for data in ({}, ACTIONS, {"name": "owner", "status": "x", "_save": "1"}):
            assert client.post(path, data).status_code in {403, 405, 302, 200}, path
            sent += 1
    assert sent > 50
    assert changed(before, log=True) == []
    group = Group.objects.get(name=Role.AUDITOR)
    url = reverse("admin:auth_group_change", args=[group.pk])
    assert client.post(url, {"name": "reviewer2"}).status_code == 403
    group.refresh_from_db()
    assert group.name == Role.AUDITOR


@pytest.mark.parametrize("role", [Role.REVIEWER, Role.SUPERVISOR, Role.OWNER])
def test_staff_who_may_decide_see_no_votes_here(world: World, role: Role) -> None:
    client = staff("ada", role)
    for path in paths():
        assert client.get(path).status_code == 403, path


def test_nobody_else_is_let_in(world: World) -> None:
    addresses = list(paths())
    for route in routes.registered():
        if route.name.startswith("admin:") and route.name != "admin:login":
            with suppress(NoReverseMatch):  # it needs a row
                addresses.append(reverse(route.name))
    for who in PEOPLE:
        for path in {*addresses, "/admin/", "/admin/nowhere/"}:
            for method in ("get", "post"):
                response = getattr(world.clients[who], method)(path)
                assert response.status_code in {302, 404, 405}, (who, path)
                assert response.headers.get("Location", "/admin/").startswith("/admin/")


def test_every_model_is_registered_to_be_read(rf: RequestFactory) -> None:
    request = rf.get("/admin/")
    request.user = Person(username="root", is_staff=True, is_superuser=True)
    for model, site in admin.site._registry.items():
        assert site.actions is None
        for name in ("add", "change", "delete"):
            assert not getattr(site, f"has_{name}_permission")(request), model
