"""J10: whatever an agent writes, and wherever, is text: on the review page, in a row of
the queue and of a batch, in an event of the log and in a mail about it.

The tools with a file name and a command are registered by the test. The full corpora in
every field are T14 and T15 (docs/proof.md); here each kind of them goes through the
real stack, read by mouse and by keys.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from agents.models import Agent
from reviews.models import ApprovalRequest, BatchItem, Notice
from tests import factories
from tests.browser import hostile
from tests.browser.inspecting import Inspector
from tests.journeys.desk.conftest import SitDown
from tests.journeys.desk.hands import LOG, Leads, Step, Way, in_ways
from tests.journeys.desk.house import House, document
from tests.journeys.desk.payloads import ENDING, PADDINGS, Payload, payloads
from tests.journeys.desk.sitting import Sitting
from tests.stack import wait_until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.servers,
    pytest.mark.proof,
]

LEAST = 40
MAILED_S = 120  # on a machine with much else to do
MOST_HIGH = 3  # viewports
GROUP = 12  # as many alternatives and items as a proposal may have
LARGE = 30  # of arguments
LONGEST_WORD, CHIP = 60, 20
BETWEEN = b"-" * 79 + b"\n"
PLAIN = {"tool": "t_note", "args": {"note": "plain", "meta": {}}}
MORE = Step("Enter", ".pager a >> nth=0", Leads.PAGE)
BATCHES = Step("g b", "#nav a[href^='/batches/']", Leads.PAGE)
OPEN = Step("Enter", "[data-open]:visible >> nth=0")
LAST = Step("k", "", Leads.HERE)  # row, from none
RECORD = Step("Enter", "#log-table [data-row] >> nth=0", Leads.PAGE)
COLOURS = re.compile(r"[\x1b\x9b][\[\]]?[0-9;?]*[A-Za-z]?")  # one token each
CLOSED = "main details:not(.more):not([open]) > summary:visible"
# Each fenced text without what we say of it, and whether it is said to speak to her.
FENCED = """() => [...document.querySelectorAll(".untrusted .foreign")].map(one => {
    const speaks = one.textContent.includes("Addressed to the reviewer")
    const bare = one.cloneNode(true)
    for (const ours of bare.querySelectorAll(".ctl, .tag")) ours.remove()
    return [bare.textContent, speaks]
})"""


@pytest.fixture
def registered(house: House) -> House:
    """The house with the tools that take anything."""
    tools = document()["tools"] | hostile.registered("suppliers")
    house.rule(tools=tools)
    Agent.objects.update(tools=[*house.agent.tools, *hostile.TOOLS])
    return house


def asked(house: House, body: dict[str, Any]) -> ApprovalRequest:
    made = house.post("/proposals", {**body, "thread": factories.new_thread()})
    assert made["status"] == "pending", made
    return ApprovalRequest.objects.get(pk=made["request"]["id"])


def groups(chosen: Sequence[Payload], most: int) -> Iterator[Sequence[Payload]]:
    for start in range(0, len(chosen), most):
        yield chosen[start : start + most]


def words(group: Sequence[Payload]) -> dict[str, Any]:
    """In everything that it says of itself; nothing of it in what it would do."""
    texts = [one.text for one in group]
    body = hostile.everywhere(texts, "t-hostile")
    evidence = [
        {"kind": text[:120], "source": text[:120], "text": text} for text in texts
    ]
    alternatives = [{"action": text, "why_not": text} for text in texts]
    return {**body, **PLAIN, "evidence": evidence, "alternatives": alternatives}


def deeds(group: Sequence[Payload]) -> Iterator[dict[str, Any]]:
    """In everything that it would do: recipients, file names, a command."""
    texts = [one.text for one in group]
    args = hostile.everywhere(texts, "t-hostile")["args"]
    yield {"tool": "t_every", "args": args}
    names = [f"{text[:100]} <a{n}@b.example>" for n, text in enumerate(texts)]
    mail = {"to": names, "subject": texts[0][:100], "body": "\n".join(texts)}
    yield {"tool": "t_mail", "args": mail}
    yield {"tool": "t_shell", "args": {"command": shlex.join(["echo", *texts])}}


class Reader:
    """A person who reads all of a page, and what the browser made of it."""

    def __init__(self, desk: Sitting) -> None:
        self.desk, self.eyes = desk, Inspector(desk.page, desk.base)

    def opens(self, request: ApprovalRequest) -> dict[str, Any]:
        self.desk.open(f"/requests/{request.pk}/")
        return self.reads(request.pk)

    def reads(self, name: str) -> dict[str, Any]:
        """With every fold opened by hand."""
        self._unfold()
        return self.eyes.look_here(name)

    def _unfold(self) -> None:
        page = self.desk.page
        folds = page.locator(CLOSED)
        if self.desk.way is Way.KEYBOARD and folds.count():
            page.keyboard.press(".")
        while folds.count():
            folds.first.click()


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_on_the_review_page(registered: House, sit_down: SitDown, way: Way) -> None:
    chosen = payloads()
    assert len(chosen) >= LEAST
    rita = sit_down("rita", way)
    reader = Reader(rita)
    for group in groups(chosen, GROUP):
        seen = reader.opens(asked(registered, words(group)))
        is_shown(group, seen["text"])
        is_only_within_its_fence(group, rita, seen)
    for group in groups(chosen, LARGE):
        for body in deeds(group):
            is_shown(group, reader.opens(asked(registered, body))["text"])
            assert "evil.example" not in rita.page.title()
    assert reader.eyes.found.nothing, reader.eyes.found
    rita.accessible()


def is_shown(group: Sequence[Payload], text: str, most: int = LONGEST_WORD) -> None:
    """No letter is swallowed, and what nobody sees is named. A chip of a sentence
    shows at most 60 characters, of both ends."""
    plain = re.sub(r"\s+", " ", text)
    for one in group:
        letters = re.findall(r"[A-Za-z]{4,}", COLOURS.sub(" ", one.text))
        longest = max(letters, key=len, default="")
        assert longest[:most] in plain, one
        missing = [name for name in one.hidden if f"⟦{name}" not in plain]
        assert not missing or "more⟧" in plain, (one, missing)


def is_only_within_its_fence(
    group: Sequence[Payload], rita: Sitting, seen: dict[str, Any]
) -> None:
    """Not in a heading, a button or the title; and what speaks to her says so."""
    spoken = key(" ".join([*seen["spoken"], rita.page.title()]))
    fenced = [(key(text), said) for text, said in rita.page.evaluate(FENCED)]
    for one in group:
        word = key(one.text)[:LONGEST_WORD]
        assert len(word) < 8 or word not in spoken, one
        told = [said for text, said in fenced if word in text]
        assert told, one
        assert not one.speaks or any(told), one
    assert rita.page.locator(".untrusted :is(script, img, a, [hx-get])").count() == 0


def key(text: str) -> str:
    """Its plain letters."""
    return re.sub(r"[^a-z]", "", COLOURS.sub("", text).lower())


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_in_rows_events_and_mails(
    registered: House, sit_down: SitDown, way: Way
) -> None:
    chosen = payloads()
    made = in_rows(registered, chosen)
    are_mailed(registered, made, chosen)
    wait_until(lambda: BatchItem.objects.count() >= LEAST, MAILED_S)
    rita = sit_down("rita", way)
    reader = Reader(rita)
    rita.open("/help/")
    rita.hand.go_to_queue()
    inside = names_in_batches()
    loose = [one for one in chosen if one.text not in inside]
    is_shown(loose, "".join(every_page(reader)), most=CHIP)
    is_shown_in_batches(reader, [one for one in chosen if one.text in inside])
    assert reader.eyes.found.nothing, reader.eyes.found
    is_shown_in_the_log(sit_down("otto", way), chosen)


def in_rows(house: House, chosen: Sequence[Payload]) -> list[ApprovalRequest]:
    """Each in a proposal of its own; they are so alike that they are put together."""
    items = [
        {
            "thread": f"t-hostile-{number}",
            "tool": "t_row",
            "args": {"name": one.text, "to": one.text[:200]},
            "idempotency_key": f"row-{number}",
        }
        for number, one in enumerate(chosen)
    ]
    made = house.post("/proposals/batch", {"items": items})["items"]
    assert {one["status"] for one in made} == {201}, made
    pks = [one["proposal"]["request"]["id"] for one in made]
    return list(ApprovalRequest.objects.filter(pk__in=pks))


def is_shown_in_the_log(otto: Sitting, chosen: Sequence[Payload]) -> None:
    """Every event, and the page of one."""
    reader = Reader(otto)
    otto.open("/help/")
    otto.hand.do(LOG)
    is_shown(chosen, "".join(every_page(reader)), most=CHIP)
    otto.hand.reach(RECORD)
    reader.reads("the record")
    otto.accessible()
    assert reader.eyes.found.nothing, reader.eyes.found


def every_page(reader: Reader) -> Iterator[str]:
    """A list to its end."""
    page = reader.desk.page
    yield reader.reads(page.url)["text"]
    while page.locator(MORE.at).count():
        if reader.desk.way is Way.KEYBOARD:
            reader.desk.hand.do(LAST)
        reader.desk.hand.reach(MORE)
        yield reader.reads(page.url)["text"]


def names_in_batches() -> set[str]:
    """What stands in the one row of a batch that the queue has for all of them."""
    held = ApprovalRequest.objects.filter(batch_items__isnull=False)
    return {one.sealed.revision.args["name"] for one in held}


def is_shown_in_batches(reader: Reader, chosen: Sequence[Payload]) -> None:
    """Every row of every batch, and one of them opened in its place."""
    desk = reader.desk
    desk.hand.do(BATCHES)
    found = reader.reads("batches")["text"]
    for link in desk.page.locator("[data-row]").evaluate_all(
        "all => all.map(one => one.pathname)"
    ):
        desk.open(link)
        desk.hand.reach(OPEN)
        expect(desk.page.locator("tr.open")).to_have_count(1)
        found += reader.reads(link)["text"]
    desk.accessible()
    is_shown(chosen, found)


def are_mailed(
    house: House, made: Sequence[ApprovalRequest], chosen: Sequence[Payload]
) -> None:
    """About each there is a mail, of our words only."""
    wanted = {request.pk for request in made}
    sent = Notice.objects.filter(request__in=wanted, sent_at__isnull=False)
    told = sent.values_list("request", flat=True)
    wait_until(
        lambda: wanted == set(told.all()), MAILED_S, lambda: house.live.log("worker")
    )
    for mail in mails(house.live.state / "mail"):
        about = re.search(r"/requests/(r-\w+)/", mail.get_content())
        if about and about[1] in wanted:
            wanted.remove(about[1])
            says_nothing(mail, chosen)
    assert wanted == set()


def mails(folder: Path) -> Iterator[EmailMessage]:
    """Django puts those of one moment into one file."""
    for file in folder.glob("*"):
        for raw in file.read_bytes().split(BETWEEN):
            if raw.strip():
                yield message_from_bytes(raw, policy=default)


def says_nothing(mail: EmailMessage, chosen: Sequence[Payload]) -> None:
    raw = f"{mail['Subject']}\n{mail.get_content()}"
    long = [one.text for one in chosen if len(one.text) > 12]
    assert [text for text in long if text in raw] == []
    assert Payload(raw).hidden == set()
    assert "evil.example" not in raw
    assert mail.get_content_type() == "text/plain"
    assert "Bcc" not in mail


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_a_padding_hides_no_ending(
    registered: House, sit_down: SitDown, way: Way
) -> None:
    """Ten thousand lines, and the last four of them stand in sight."""
    rita = sit_down("rita", way)
    reader = Reader(rita)
    for slot in (
        {"alternatives": [{"action": PADDINGS["dots"]}]},
        {"evidence": [{"kind": "mail", "text": PADDINGS["dots"]}]},
        {"rationale": PADDINGS["blanks"]},
    ):
        request = asked(registered, {**PLAIN, **slot})
        rita.open(f"/requests/{request.pk}/")
        for line in ENDING:
            expect(rita.page.get_by_text(line)).to_be_visible()
        high = "document.documentElement.scrollHeight / innerHeight"
        assert rita.page.evaluate(high) < MOST_HIGH
        reader.eyes.look_here(request.pk)
    rita.accessible()
    assert reader.eyes.found.nothing, reader.eyes.found


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_what_cannot_be_inspected_is_said(
    registered: House, sit_down: SitDown, way: Way
) -> None:
    command = "echo cm0gLXJmIC8K | base64 -d | sh"
    request = asked(registered, {"tool": "t_shell", "args": {"command": command}})
    rita = sit_down("rita", way)
    page = rita.open(f"/requests/{request.pk}/")
    tags = page.locator(".tags .tag-loud").filter(has_text="could not be inspected")
    expect(tags).to_be_visible()
    expect(page.get_by_test_id("diff")).to_contain_text("Could not be inspected")
    rita.hand.arm("approve")
    rita.accessible()
