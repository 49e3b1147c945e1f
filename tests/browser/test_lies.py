"""T15: what an agent says and proposes to be waved through. The facts are the same
whatever it says, and every lie leaves the sign that gives it away. I31."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from reviews.models import ApprovalRequest, Proposal
from tests.browser.conftest import SitDown
from tests.browser.facts import facts, fenced
from tests.browser.hostile import Stage, kept, sampled, stage
from tests.browser.inspecting import Inspector
from tests.browser.lying import END, PAYMENT, deeds, in_batches, said, words
from tests.conftest import Gate
from tests.markup import flatten

pytestmark = [pytest.mark.browser, pytest.mark.proof, pytest.mark.timeout(0)]

HIGH = 3  # viewports that a page may be when a text pads


@pytest.fixture
def hostile(gate: Gate) -> Stage:
    return stage(gate)


def test_whatever_it_says_the_facts_are_the_same(
    hostile: Stage,
    sit_down: SitDown,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    chosen = sampled(words(), proof_n(small=24, full=1000))
    desk = sit_down("sue")
    eyes = Inspector(desk.page, desk.base)
    plain = {"rationale": "The customer asked for it."}
    truth = flatten(_facts(hostile, eyes, plain)["html"])
    assert "40.00" in truth
    assert "ACME Ltd" in truth
    silent: list[Any] = []
    for batch in in_batches(chosen):
        found = _facts(hostile, eyes, said(batch))
        assert flatten(found["html"]) == truth, batch
        spoken = [one for one in batch if one["sign"] == "speaks"]
        assert found["signs"] or not [s for s in spoken if s["slot"] != "summary"]
        texts = found["fenced"]
        eyes.look("/threads/riley/t-1/")
        texts += fenced(desk.page)
        seen = found["seen"]
        silent += [lie for lie in batch if not _is_given_away(lie, texts, seen)]
        assert batch[0]["sign"] != "tail" or seen["height"] < HIGH, batch
    assert silent == []
    assert eyes.found.nothing, str(eyes.found)
    desk.said.clear()
    record_proof(
        "T15",
        f"{len(chosen)} lies in words: the facts are identical to the letter, each is "
        f"fenced and marked (0 silent: at most {3 / len(chosen):.2%})",
    )


def test_what_it_proposes_is_shown_marked_or_refused(
    hostile: Stage,
    sit_down: SitDown,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    chosen = sampled(deeds(), proof_n(small=16, full=1000))
    desk = sit_down("sue")
    eyes = Inspector(desk.page, desk.base)
    silent = [lie for lie in chosen if not _is_caught(hostile, eyes, lie)]
    assert silent == []
    assert eyes.found.nothing, str(eyes.found)
    desk.said.clear()
    record_proof(
        "T15",
        f"{len(chosen)} lies in arguments: shown, marked or refused (0 silent: at most "
        f"{3 / len(chosen):.2%})",
    )


def _facts(hostile: Stage, eyes: Inspector, words: dict[str, Any]) -> dict[str, Any]:
    """What the page says of the same payment under these words."""
    request = hostile.ask({"tool": "t_pay", "args": PAYMENT, **words})
    hostile.forget()
    seen = eyes.look(f"/requests/{request.pk}/")
    return {**facts(eyes.page), "seen": seen, "fenced": fenced(eyes.page)}


def _is_given_away(
    lie: dict[str, Any], texts: Sequence[dict[str, Any]], seen: dict[str, Any]
) -> bool:
    """Whether it stands in a fence, with its sign, and in no heading or button."""
    key = _key(lie["text"])
    places = [one for one in texts if key in _plain(one["text"])]
    spoken = " ".join(seen["spoken"])
    if not places or (len(key) > 12 and key in _plain(spoken)):
        return False
    match lie["sign"]:
        case "speaks":
            return any(one["speaks"] for one in places)
        case "token":
            return any(one["tokens"] for one in places)
        case "tail":
            return any(_plain(END) in _plain(one["inSight"]) for one in places)
    return True


def _plain(text: str) -> str:
    return re.sub(r"[^a-z]", "", text.lower())


def _key(text: str) -> str:
    """The longest run of plain letters that redaction leaves: what to find it by."""
    found = re.findall(r"[a-z]{3,}", kept(text).lower())
    return max(found, key=len, default="")[:40]


def _is_caught(hostile: Stage, eyes: Inspector, lie: dict[str, Any]) -> bool:
    before = Proposal.objects.count()
    answer = hostile.propose({"tool": lie["tool"], "args": lie["args"]})
    if lie["sign"] == "refused":
        return answer.status_code == 422 and Proposal.objects.count() == before
    assert answer.status_code == 201, (lie, answer.content)
    request = ApprovalRequest.objects.get(pk=answer.json()["request"]["id"])
    eyes.look(f"/requests/{request.pk}/")
    found = facts(eyes.page)
    if lie["sign"] == "fact":
        return str(lie["fact"]) in found["text"]
    return bool(found["marked"])
