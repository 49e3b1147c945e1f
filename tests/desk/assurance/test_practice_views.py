"""Practice in the browser: offered and never forced, the same regions as a review, and
what the reviewer hears after each answer."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from journal import clock
from reviews.choices import DefectKind, Verdict
from reviews.models import ApprovalRequest, Practice, PracticeItem
from tests.assurance.planting import plant_only
from tests.assurance.practising import answer, approve_all, approve_sources, miss, start
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.markup import find_element, flatten, read_page, read_text

pytestmark = pytest.mark.django_db
START = "/assurance/practice/start/warm-up/"
REGIONS = ("h1-effect", "diff", "reversal", "why-asked", "agent-text")


def open_item(client: Client, item: PracticeItem) -> str:
    address = reverse("reviews:practice_item", args=[item.practice_id, item.number])
    return client.get(address).content.decode()


def find_regions(html: str) -> list[str]:
    """What a reviewer reads before they decide."""
    flat = flatten(html)
    return [find_element(flat, name) for name in REGIONS]


def test_the_queue_offers_a_warm_up_and_takes_no_for_an_answer(
    gate: Gate, as_: SignIn
) -> None:
    rita = as_("rita")
    assert 'data-testid="warm-up"' not in read_page(rita.get("/queue/"))
    approve_sources(gate)
    assert "not decided a request" in read_text(rita.get("/queue/"), "warm-up")
    assert 'data-testid="warm-up"' not in read_page(as_("sam").get("/queue/"))
    assert 'data-testid="warm-up"' not in read_page(rita.get("/queue/?tab=done"))
    assert rita.post("/assurance/practice/decline/").url == "/queue/"  # type: ignore[attr-defined]
    assert 'data-testid="warm-up"' not in read_page(rita.get("/queue/"))
    assert "Start warm-up" in read_text(rita.get("/assurance/"), "practice")
    Practice.objects.update(started_at=clock.now() - timedelta(days=4))
    assert 'data-testid="warm-up"' in read_page(rita.get("/queue/"))


def test_ten_items_with_an_answer_to_each(gate: Gate, as_: SignIn) -> None:
    approve_sources(gate)
    plant_only(gate, DefectKind.AMOUNT_TENFOLD)
    rita = as_("rita")
    place = rita.post(START).url  # type: ignore[attr-defined]
    for item in PracticeItem.objects.select_related("version").order_by("number"):
        page = rita.get(place)
        assert f"item {item.number} of 10" in read_text(page, "practice")
        for word in ("Planted:", "got past you", "Tenfold"):
            assert word not in page.content.decode()
        assert ("50.00" in read_text(page, "h1-effect")) == bool(item.defect)
        wrong = rita.post(place, {"answer": "perhaps"})
        assert wrong.status_code == 422
        assert "Choose approve or reject" in read_text(wrong, "problem")
        given = "reject" if item.number > 1 and item.defect else "approve"
        assert rita.post(place, {"answer": given}).url == place  # type: ignore[attr-defined]
        said = read_text(rita.get(place), "feedback")
        if item.defect:
            expected = "You caught it." if given == "reject" else "got past you"
            assert expected in said
            assert "Planted: The amount is ten times the right one." in said
            assert "in the effect sentence" in said
        else:
            assert "Right: nothing was planted." in said
        assert rita.post(place, {"answer": given}).status_code == 409
        href = re.search(
            r'href="([^"]+)"[^>]*>(Next item|Your answers)', read_page(rita.get(place))
        )
        assert href is not None
        place = href[1]
    ended = Practice.objects.get()
    assert place == f"/assurance/practice/{ended.pk}/"
    missed = int(bool(PracticeItem.objects.get(number=1).defect))
    result = read_text(rita.get(place), "result")
    assert f"You caught {5 - missed} of 5 planted defects" in result
    assert "approved 5 of 5 items" in result
    assert f"{5 - missed} of 5" in read_text(rita.get("/assurance/"), "own-practice")
    assert as_("sue").get(place).status_code == 404


def test_an_item_shows_the_regions_of_the_request(gate: Gate, as_: SignIn) -> None:
    """An item without a defect has the very regions of the request's own page, and one
    with a defect differs in what was planted."""
    approve_sources(gate)
    plant_only(gate, DefectKind.CLAIMED_APPROVAL)
    chosen = start(gate.rita)
    rita = as_("rita")
    for item in chosen.items.order_by("number"):
        page = rita.get(f"/requests/{item.version.request_id}/").content.decode()
        pairs = zip(
            REGIONS,
            find_regions(open_item(rita, item)),
            find_regions(page),
            strict=True,
        )
        differing = [name for name, shown, real in pairs if shown != real]
        assert differing == (["agent-text"] if item.defect else [])
        answer(chosen, item, Verdict.APPROVE)


def test_the_rest_can_be_skipped(gate: Gate, as_: SignIn) -> None:
    approve_sources(gate)
    rita = as_("rita")
    place = rita.post(START).url  # type: ignore[attr-defined]
    assert "Continue" in read_text(rita.get("/assurance/"), "practice")
    rita.post(place, {"answer": "approve"})
    chosen = Practice.objects.get()
    end = rita.post(f"/assurance/practice/{chosen.pk}/skip/", follow=True)
    assert "You skipped the rest." in read_text(end, "result")
    assert rita.get(place).status_code == 200  # the answer can be read again
    assert rita.get(f"/assurance/practice/{chosen.pk}/2/").status_code == 404
    assert "Continue" not in read_text(rita.get("/assurance/"), "practice")


def test_a_defect_that_no_longer_fits_ends_the_practice(
    gate: Gate, as_: SignIn
) -> None:
    approve_sources(gate)
    chosen = start(gate.rita)
    chosen.items.filter(number=1).update(defect=DefectKind.MISSING_WHERE)
    rita = as_("rita")
    page = rita.get(f"/assurance/practice/{chosen.pk}/1/")
    assert "can no longer be shown" in read_text(page, "gone")
    assert "I would approve" not in read_text(page)
    assert "Skip the rest" in read_text(page)


def test_too_few_requests_are_said_before_the_start(gate: Gate, as_: SignIn) -> None:
    rita = as_("rita")
    assert "needs ten requests" in read_text(rita.get("/assurance/"), "too-few")
    assert "too few" in read_text(rita.post(START))
    assert rita.post(START).status_code == 409
    assert rita.post("/assurance/practice/start/unheard-of/").status_code == 404
    assert 'data-testid="practice"' not in read_page(as_("otto").get("/assurance/"))


def test_three_misses_offer_two_minutes_of_practice(gate: Gate, as_: SignIn) -> None:
    kind = DefectKind.AMOUNT_TENFOLD
    plant_only(gate, kind)
    second = miss(gate, kind, 2)
    rita = as_("rita")
    outcome = rita.get(f"/requests/{second.pk}/")
    assert "Practise this kind" not in read_text(outcome, "decide")
    third = miss(gate, kind, 1)
    offered = rita.get(f"/requests/{third.pk}/")
    assert "Practise this kind for 2 minutes" in read_text(offered, "decide")
    approve_sources(gate, 6)
    address = f"/assurance/practice/start/{kind}/"
    assert address in read_page(offered)
    response = rita.post(address, headers={"HX-Request": "true"})
    chosen = Practice.objects.get()
    assert response["HX-Redirect"] == f"/assurance/practice/{chosen.pk}/1/"
    assert "Practice: tenfold amount" in read_text(
        rita.get(response["HX-Redirect"]), "practice"
    )
    approve_all(chosen)
    ended = rita.get(f"/requests/{third.pk}/")
    assert "Practise this kind" not in read_text(ended, "decide")
    caught = ApprovalRequest.with_canaries.filter(canary=True, status="withdrawn")
    assert caught.count() == 3


def test_a_supervisor_sees_their_people_in_the_order_of_their_names(
    gate: Gate, as_: SignIn
) -> None:
    approve_sources(gate)
    approve_all(start(gate.tom))
    chosen = start(gate.rita)
    for item in chosen.items.order_by("number"):
        answer(chosen, item, Verdict.REJECT if item.defect else Verdict.APPROVE)
    miss(gate, DefectKind.AMOUNT_TENFOLD, 1)
    rows = read_text(as_("sue").get("/assurance/"), "people")
    assert rows.endswith(
        "Rita Example 0 % (0 of 1, few) 100 % (5 of 5, few)"
        " Tom Example none 0 % (0 of 5, few)"
    )
    for name in ("rita", "tom", "adam", "otto"):
        page = read_page(as_(name).get("/assurance/"))
        assert 'data-testid="people"' not in page, name
    gate.rita.queueuserpermission_set.all().delete()
    assert "Rita" not in read_text(as_("sue").get("/assurance/"), "people")
