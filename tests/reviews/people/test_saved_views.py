"""Named filters: each person's own, each name once, and not without end."""

from __future__ import annotations

import pytest

from desk.queue import page as queue
from desk.queue.page import QueueFilters
from journal import clock
from journal.errors import Conflict, InvalidInput, NotFound
from reviews.models import SavedView
from reviews.people import preferences
from reviews.people.preferences import create_saved_view, delete_saved_view
from tests.conftest import Gate

pytestmark = pytest.mark.django_db


def names(gate: Gate, name: str, page: str = "queue") -> list[str]:
    return [view.name for view in preferences.list_saved_views(gate.people[name], page)]


def test_each_has_their_own_by_name_and_list(gate: Gate) -> None:
    create_saved_view(person=gate.rita, page="queue", name="Refunds", query="tool=pay")
    create_saved_view(person=gate.rita, page="queue", name="Calm", query="risk=low")
    create_saved_view(
        person=gate.rita, page="log", name="Refunds", query="kind=decision"
    )
    create_saved_view(person=gate.tom, page="queue", name="Refunds", query="")
    assert names(gate, "rita") == ["Calm", "Refunds"]
    assert names(gate, "rita", "log") == ["Refunds"]
    assert names(gate, "tom") == ["Refunds"]
    assert names(gate, "sue") == []


def test_a_name_is_used_once_and_the_first_stays(gate: Gate) -> None:
    create_saved_view(person=gate.rita, page="queue", name="Mine", query="risk=high")
    with pytest.raises(Conflict):
        create_saved_view(person=gate.rita, page="queue", name="Mine", query="risk=low")
    assert SavedView.objects.get().query == "risk=high"


def test_there_are_so_many_and_no_more(gate: Gate) -> None:
    for number in range(preferences.MAX_VIEWS):
        create_saved_view(
            person=gate.rita, page="queue", name=f"View {number}", query=""
        )
    with pytest.raises(InvalidInput):
        create_saved_view(person=gate.rita, page="queue", name="One more", query="")
    create_saved_view(person=gate.rita, page="log", name="Of another list", query="")


def test_only_ones_own_is_deleted(gate: Gate) -> None:
    view = create_saved_view(person=gate.rita, page="queue", name="Mine", query="")
    with pytest.raises(NotFound):
        delete_saved_view(person=gate.tom, view_id=view.pk)
    assert delete_saved_view(person=gate.rita, view_id=view.pk) == "queue"
    with pytest.raises(NotFound):
        delete_saved_view(person=gate.rita, view_id=view.pk)


def test_the_queue_says_which_view_is_on_the_screen(gate: Gate) -> None:
    filters = QueueFilters.read({"tool": "pay", "risk": "high"})
    create_saved_view(
        person=gate.rita, page="queue", name="Refunds", query=filters.query()
    )
    create_saved_view(person=gate.rita, page="queue", name="Everything", query="")
    now = queue.build_queue_page(gate.rita, filters, now=clock.now())
    assert [(view.name, view.current) for view in now.saved.views] == [
        ("Everything", False),
        ("Refunds", True),
    ]
    url = next(view.url for view in now.saved.views if view.current)
    assert url == filters.url()
