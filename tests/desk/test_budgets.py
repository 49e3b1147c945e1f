"""What a page may weigh: sizes here, requests in the browser's tests."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.db import connection
from django.template.backends.django import Template

from reviews.choices import Verdict
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import decide, propose

KB = 1024
STATIC = [("counterseal.css", 14), ("counterseal.js", 12), ("icons.svg", 4)]


def packed(content: bytes) -> int:
    return len(gzip.compress(content, 6))


@pytest.mark.parametrize(("name", "most"), STATIC)
def test_what_every_page_loads_is_small(name: str, most: int) -> None:
    content = (Path(settings.BASE_DIR) / "static" / name).read_bytes()
    assert packed(content) <= most * KB


def test_all_scripts_together_are_small() -> None:
    found = finders.find("django_htmx/htmx-2.min.js")
    assert isinstance(found, str)
    ours = Path(settings.BASE_DIR) / "static" / "counterseal.js"
    whole = packed(Path(found).read_bytes()) + packed(ours.read_bytes())
    assert whole <= 28 * KB


def test_fifty_rows_are_light(gate: Gate, as_: SignIn) -> None:
    for number in range(50):
        propose(gate.agent, customer=f"C-{number}", thread=f"t-{number}")
    content = as_("rita").get("/queue/").content
    assert content.count(b"data-request=") == 50
    assert packed(content) <= 18 * KB
    assert len(content) <= 120 * KB


def test_a_review_is_light(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent, amount="899.00", rationale="It is so. " * 60).request
    content = as_("sue").get(f"/requests/{request.pk}/").content
    assert packed(content) <= 16 * KB
    assert len(content) <= 80 * KB


def test_what_is_printed_was_asked_for_before(
    gate: Gate, as_: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = propose(gate.agent, amount="899.00").request
    rejected = propose(gate.agent, amount="20.00", thread="t-2").request
    decide(rejected, gate.sue, Verdict.REJECT, reason_code="not_needed")
    plain, asked = Template.render, []

    def noted(execute: Any, sql: str, *rest: Any) -> Any:
        asked.append(sql)
        return execute(sql, *rest)

    def printing(self: Template, *args: Any, **kwargs: Any) -> Any:
        with connection.execute_wrapper(noted):
            return plain(self, *args, **kwargs)

    monkeypatch.setattr(Template, "render", printing)
    for path in ("/queue/", *(f"/requests/{one.pk}/" for one in (request, rejected))):
        assert as_("sue").get(path).status_code == 200
    assert asked == []
