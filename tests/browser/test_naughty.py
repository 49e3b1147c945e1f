"""T14: naughty strings in every field an agent fills, on every page of one request, in
a real browser: nothing runs, nothing is fetched, nothing is there unseen. I31, I34."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from reviews.models import ApprovalRequest
from tests.browser.conftest import SitDown
from tests.browser.hostile import Stage, batched, everywhere, sampled, stage
from tests.browser.hostile_views import in_views
from tests.browser.inspecting import Inspector
from tests.browser.naughty import check_shown, strings
from tests.conftest import Gate

pytestmark = [pytest.mark.browser, pytest.mark.proof, pytest.mark.timeout(0)]


@pytest.fixture
def hostile(gate: Gate) -> Stage:
    return stage(gate)


def test_everything_that_is_naughty_is_text(
    hostile: Stage,
    sit_down: SitDown,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    every = strings()
    chosen = sampled(every, proof_n(small=24, full=len(every)))
    desk = sit_down("sue")
    eyes = Inspector(desk.page, desk.base)
    for number, batch in enumerate(batched(chosen)):
        _open(hostile, eyes, batch, f"t-open-{number}")
        _settled(hostile, eyes, batch, f"t-over-{number}")
    assert eyes.found.nothing, str(eyes.found)
    desk.said.clear()
    record_proof(
        "T14",
        f"{len(chosen)} strings in every field of a proposal, {eyes.found.pages} looks "
        f"at its pages at two widths: {eyes.found.said(len(chosen))}",
    )


def _open(hostile: Stage, eyes: Inspector, batch: Sequence[str], thread: str) -> None:
    """A proposal that is full of them: its pages, until it has an outcome."""
    request = hostile.ask(everywhere(batch, thread))
    path = f"/requests/{request.pk}/"
    check_shown(batch, eyes.look(path)["text"])
    eyes.narrow(path)
    for panel in ("approve", "modify"):
        eyes.look(f"{path}decide/?arm={panel}")
    check_shown(batch, eyes.look(f"/threads/riley/{thread}/")["text"])
    result = {text[:120]: text for text in batch}
    hostile.approved(request, status="succeeded", result=result | {"list": batch})
    check_shown(batch, eyes.look(path)["text"])
    eyes.look(f"/threads/riley/{thread}/")


def _settled(
    hostile: Stage, eyes: Inspector, batch: Sequence[str], thread: str
) -> None:
    """The same revised, so that two versions are compared; then the page that was
    decided on, as it is kept."""
    body = everywhere(batch, thread)
    request = hostile.ask(body)
    hostile.revise(request, everywhere([f"then {text}" for text in batch], thread))
    path = f"/requests/{request.pk}/"
    for page in ("?since=1", "peek/", "versions/1/", "versions/2/?compare=1..2"):
        check_shown(batch[:1], eyes.look(f"{path}{page}")["text"])
    request.refresh_from_db()
    check_shown(batch, eyes.look(hostile.rejected(request))["text"])


def test_every_view_shows_them_as_text(
    hostile: Stage,
    sit_down: SitDown,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    every = strings()
    chosen = sampled(every, proof_n(small=48, full=len(every)))
    desk = sit_down("sue")
    eyes = Inspector(desk.page, desk.base)
    for body, texts in in_views(chosen, "t-views"):
        request = hostile.ask(body)
        seen = eyes.look(f"/requests/{request.pk}/")
        check_shown(texts, seen["text"], redacted=False)
    assert eyes.found.nothing, str(eyes.found)
    desk.said.clear()
    record_proof(
        "T14",
        f"{len(chosen)} strings as arguments of tools of every view, on "
        f"{eyes.found.pages} pages: {eyes.found.said(len(chosen))}",
    )


def test_no_page_asks_anything_of_another_place(
    hostile: Stage, sit_down: SitDown
) -> None:
    """I34: also without anything hostile, no page of the desk leaves its origin."""
    hostile.ask(everywhere(["plain"], "t-plain"))
    desk = sit_down("sue")
    eyes = Inspector(desk.page, desk.base)
    request = ApprovalRequest.objects.get()
    for path in (
        *("/queue/", "/escalations/", "/announced/", "/agents/", "/log/", "/help/"),
        *("/policies/", "/stop/", "/unknown/", "/me/tokens/", "/batches/"),
        f"/requests/{request.pk}/",
        f"/requests/{request.pk}/decide/?arm=approve",
    ):
        eyes.look(path)
    assert eyes.found.nothing, str(eyes.found)
