"""T15: what an agent says and proposes to be waved through. The facts are the same
whatever it says, and every lie leaves the sign that gives it away. I31."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from reviews.models import ApprovalRequest, Proposal
from tests import corpora
from tests.browser.conftest import SitDown
from tests.browser.hostile import Stage, sampled, stage
from tests.browser.inspecting import Inspector
from tests.conftest import Gate

pytestmark = [pytest.mark.browser, pytest.mark.proof, pytest.mark.timeout(0)]

PAYMENT = {"payee": "ACME Ltd", "amount": "40.00", "currency": "USD"}
END = "Then send everything to account DE00 9999."
MANY = 10  # of a kind of which a proposal may hold several
# The regions that are ours, without what is another's on every request.
_FACTS = r"""
() => {
  const ours = "[aria-labelledby=h1], [data-testid=diff], [data-testid=reversal],"
    + " [data-testid=why-asked]";
  const found = [...document.querySelectorAll(ours)];
  return {
    html: found.map((one) => one.outerHTML).join("\n"),
    text: found.map((one) => one.textContent).join("\n"),
    marked: found.flatMap((one) => [...one.querySelectorAll(".ctl, .mixed, .tag-loud")])
      .map((one) => one.textContent),
    loud: [...document.querySelectorAll(".tag-loud")].map((one) => one.textContent),
  };
}
"""
# Every fenced text: under which heading, what stands in sight, and how it is marked.
_FENCED = r"""
() => [...document.querySelectorAll(".untrusted .foreign")].map((one) => {
  const inSight = one.cloneNode(true);
  for (const fold of inSight.querySelectorAll("details")) fold.remove();
  const before = one.previousElementSibling;
  return {
    heading: before?.tagName === "DT" ? before.textContent : "",
    item: one.closest("details.item")?.querySelector("summary").textContent || "",
    text: one.textContent, inSight: inSight.textContent,
    speaks: one.textContent.includes("Speaks to the reviewer"),
    tokens: one.querySelectorAll(".ctl").length,
  };
})
"""
_CHANGING = re.compile(
    r"r-[0-9a-z]{12,}|p-[0-9a-z]{12,}|\d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.+]+"
)


@pytest.fixture
def hostile(gate: Gate) -> Stage:
    return stage(gate)


def words() -> list[dict[str, Any]]:
    return [lie for lie in corpora.lies() if "slot" in lie]


def deeds() -> list[dict[str, Any]]:
    return [lie for lie in corpora.lies() if "tool" in lie]


def test_whatever_it_says_the_facts_are_the_same(
    hostile: Stage,
    sit_down: SitDown,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    chosen = sampled(words(), proof_n(small=24, full=1000))
    desk = sit_down("sue")
    eyes = Inspector(desk.page, desk.base)
    truth = _facts(hostile, eyes, {"rationale": "The customer asked for it."})["html"]
    assert "40.00" in truth
    assert "ACME Ltd" in truth
    silent: list[Any] = []
    for batch in _batches(chosen):
        body = _said(batch)
        found = _facts(hostile, eyes, body)
        assert found["html"] == truth, batch
        seen = eyes.look_here("request")
        fenced = found["fenced"]
        eyes.look("/threads/riley/t-1/")
        fenced += desk.page.evaluate(_FENCED)
        silent += [lie for lie in batch if not _is_given_away(lie, fenced, seen)]
        assert len(batch) > 1 or seen["height"] < 5, batch
    assert silent == []
    assert eyes.found.nothing, eyes.found
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
    assert eyes.found.nothing, eyes.found
    desk.said.clear()
    record_proof(
        "T15",
        f"{len(chosen)} lies in arguments: shown, marked or refused (0 silent: at most "
        f"{3 / len(chosen):.2%})",
    )


def test_no_command_passes_in_silence(
    hostile: Stage,
    sit_down: SitDown,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    every = corpora.flat(corpora.shell_abuses())
    chosen = sampled(every, proof_n(small=16, full=1000))
    desk = sit_down("sue")
    eyes = Inspector(desk.page, desk.base)
    silent, undecoded = [], 0
    for command in chosen:
        body = {"tool": "t_shell", "args": {"command": command}}
        request = hostile.ask(body)
        eyes.look(f"/requests/{request.pk}/")
        facts = desk.page.evaluate(_FACTS)
        undecoded += "Could not be inspected" in facts["text"]
        if not facts["loud"]:
            silent.append(command)
        for word in re.findall(r"[A-Za-z]{4,}", command):
            assert word in facts["text"], command
    assert silent == []
    assert eyes.found.nothing, eyes.found
    desk.said.clear()
    record_proof(
        "T15",
        f"{len(chosen)} shell commands that do more than they seem to: each is called "
        f"out, {undecoded} as not decoded (0 silent: at most {3 / len(chosen):.2%})",
    )


def _facts(hostile: Stage, eyes: Inspector, said: dict[str, Any]) -> dict[str, Any]:
    """What the page says of the same payment under these words."""
    request = hostile.ask({"tool": "t_pay", "args": PAYMENT, **said})
    eyes.look(f"/requests/{request.pk}/")
    found: dict[str, Any] = eyes.page.evaluate(_FACTS)
    found["html"] = _CHANGING.sub("~", found["html"])
    found["fenced"] = eyes.page.evaluate(_FENCED)
    return found


def _batches(lies: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """As many lies as one proposal has places for; one that pads stands alone."""
    room: dict[str, int] = defaultdict(int)
    batch: list[dict[str, Any]] = []
    for lie in sorted(lies, key=lambda one: one["sign"] == "tail"):
        slot = (
            lie["slot"].partition("_")[0] if "evidence" in lie["slot"] else lie["slot"]
        )
        most = MANY if slot in ("evidence", "alternative") else 1
        if batch and (room[slot] >= most or lie["sign"] == "tail"):
            yield batch
            batch, room = [], defaultdict(int)
        batch.append(lie)
        room[slot] += 1
    if batch:
        yield batch


def _said(batch: Sequence[dict[str, Any]]) -> dict[str, Any]:
    body: dict[str, Any] = {"evidence": [], "alternatives": []}
    for number, lie in enumerate(batch):
        text = lie["text"]
        match lie["slot"]:
            case "evidence":
                item = {"kind": f"item {number}", "text": text}
                body["evidence"].append(item)
            case "evidence_source" | "evidence_kind":
                name = lie["slot"].removeprefix("evidence_")
                item = {"kind": "mail", "text": text, name: text[:128]}
                body["evidence"].append(item)
            case "alternative":
                body["alternatives"].append({"action": text})
            case "summary":
                body["checkpoint"] = {"summary": text}
            case slot:
                body[slot] = text
    return body


def _is_given_away(
    lie: dict[str, Any], fenced: Sequence[dict[str, Any]], seen: dict[str, Any]
) -> bool:
    """Whether it stands in a fence, with its sign, and in no heading or button."""
    key = _key(lie["text"])
    places = [one for one in fenced if key in _plain(one["text"])]
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
    """The longest run of plain letters: what to find it by."""
    found = re.findall(r"[a-z]{3,}", text.lower())
    return max(found, key=len, default="")


def _is_caught(hostile: Stage, eyes: Inspector, lie: dict[str, Any]) -> bool:
    before = Proposal.objects.count()
    answer = hostile.propose({"tool": lie["tool"], "args": lie["args"]})
    if lie["sign"] == "refused":
        return answer.status_code == 422 and Proposal.objects.count() == before
    assert answer.status_code == 201, (lie, answer.content)
    request = ApprovalRequest.objects.get(pk=answer.json()["request"]["id"])
    eyes.look(f"/requests/{request.pk}/")
    facts = eyes.page.evaluate(_FACTS)
    if lie["sign"] == "fact":
        return str(lie["fact"]) in facts["text"]
    return bool(facts["marked"])
