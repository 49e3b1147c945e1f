"""Saving what a list shows, going back to it, and forgetting it."""

from __future__ import annotations

import pytest

from reviews.models import SavedView
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import propose
from tests.markup import read_page, read_text

SAVE = "/views/queue/"
OFFERED = 'data-testid="save-view"'


def test_a_filter_is_kept_and_is_a_link_back(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent)
    rita = as_("rita")
    plain = read_page(rita.get("/queue/"))
    assert OFFERED not in plain  # there is nothing to name
    assert OFFERED in read_page(rita.get("/queue/?risk=high"))
    sent = {"name": "Grave ones", "query": "risk=high"}
    answer = rita.post(SAVE, sent)
    assert (answer.status_code, answer["Location"]) == (302, "/queue/?risk=high")
    shown = read_page(rita.get("/queue/"))
    assert '<a href="/queue/?risk=high">Grave ones</a>' in shown
    there = read_page(rita.get("/queue/?risk=high"))
    assert 'aria-current="true">Grave ones</a>' in there
    assert "Grave ones" not in as_("tom").get("/queue/").content.decode()


@pytest.mark.parametrize(
    "name",
    ["", "   ", "x" * 65, "Taken"],
)
def test_a_wrong_name_is_said_at_its_field_and_stays(
    gate: Gate, as_: SignIn, name: str
) -> None:
    rita = as_("rita")
    rita.post(SAVE, {"name": "Taken", "query": "risk=low"})
    answer = rita.post(SAVE, {"name": name, "query": "risk=high"})
    source = read_page(answer)
    assert answer.status_code == 422
    assert read_text(answer, "view-error")
    assert 'aria-describedby="view-error"' in source
    assert f'value="{name.strip()}"' in source
    assert 'name="query" value="risk=high"' in source
    assert [view.name for view in SavedView.objects.all()] == ["Taken"]


def test_what_is_no_filter_is_not_kept(gate: Gate, as_: SignIn) -> None:
    """Only what the queue reads from its address: no page of anybody else's."""
    query = "risk=high&next=//evil.example&tab=nothing&q=%00<b>"
    as_("rita").post(SAVE, {"name": "Odd", "query": query})
    kept = SavedView.objects.get().query
    assert "evil" not in kept
    assert "nothing" not in kept
    assert "risk=high" in kept


def test_a_name_is_text(gate: Gate, as_: SignIn) -> None:
    rita = as_("rita")
    rita.post(SAVE, {"name": "<b>x</b>", "query": "risk=high"})
    source = rita.get("/queue/").content.decode()
    assert "<b>x</b>" not in source
    assert "&lt;b&gt;x&lt;/b&gt;" in source


def test_it_is_deleted_by_a_button(gate: Gate, as_: SignIn) -> None:
    rita = as_("rita")
    rita.post(SAVE, {"name": "Mine", "query": "risk=high"})
    url = f"/views/{SavedView.objects.get().pk}/delete/"
    assert f'action="{url}"' in rita.get("/queue/").content.decode()
    assert as_("tom").post(url).status_code == 404
    assert rita.get(url).status_code == 405
    assert rita.post(url)["Location"] == "/queue/"
    assert not SavedView.objects.exists()


def test_a_search_of_the_log_is_kept_too(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent)
    otto = as_("otto")
    assert OFFERED not in read_page(otto.get("/log/"))
    sent = {"name": "Revealed", "query": "flag=revealed&before=7"}
    answer = otto.post("/views/log/", sent | {"name": ""})
    assert answer.status_code == 422
    assert 'aria-describedby="view-error"' in answer.content.decode()
    answer = otto.post("/views/log/", sent | {"query": "flag=revealed"})
    assert answer["Location"] == "/log/?flag=revealed"
    there = read_page(otto.get("/log/?flag=revealed"))
    assert 'aria-current="true">Revealed</a>' in there
    assert "Revealed" not in otto.get("/queue/").content.decode()
    url = f"/views/{SavedView.objects.get().pk}/delete/"
    assert otto.post(url)["Location"] == "/log/"


def test_no_other_list_has_views(gate: Gate, as_: SignIn) -> None:
    answer = as_("rita").post("/views/agents/", {"name": "x", "query": ""})
    assert answer.status_code == 404
    assert not SavedView.objects.exists()
