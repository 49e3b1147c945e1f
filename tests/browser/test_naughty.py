"""T14: naughty strings in every field an agent fills, on every way to people, in a real
browser: nothing runs, nothing is fetched, nothing is there unseen. I31, I34."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
from django.core import mail

from journal.models import LogRecord, OutboxMessage
from reviews import tasks
from reviews.models import ApprovalRequest
from tests import corpora
from tests.browser.conftest import SitDown
from tests.browser.hostile import Stage, batched, everywhere, sampled, stage
from tests.browser.inspecting import Inspector
from tests.conftest import Gate
from tests.reviews.presenters.test_inert import HIDDEN

pytestmark = [pytest.mark.browser, pytest.mark.proof, pytest.mark.timeout(0)]

# All that nobody sees, a few a line, each between two letters.
WHOLE = [code for code in HIDDEN if not 0xD800 <= code <= 0xDFFF]
UNSEEN = [
    "".join(f"a{chr(code)}" for code in WHOLE[start : start + 40])
    for start in range(0, len(WHOLE), 40)
]
HIDDEN_CODES = frozenset(HIDDEN)
RAN_WITHIN = "no script ran, no request left, no character was unseen"


@pytest.fixture
def hostile(gate: Gate) -> Stage:
    return stage(gate)


def strings() -> list[str]:
    trojan = [
        text for family in corpora.trojan_source().values() for text in family.values()
    ]
    return [*corpora.flat(corpora.naughty()), *trojan, *UNSEEN]


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
        _fields(hostile, eyes, batch, f"t-every-{number}")
    _rows(hostile, eyes, chosen)
    _mails(chosen)
    found = eyes.found
    assert found.nothing, found
    desk.said.clear()
    record_proof(
        "T14",
        f"{len(chosen)} strings in every field of a proposal, on {found.pages} pages: "
        f"{RAN_WITHIN} (0 of {len(chosen)}: at most {3 / len(chosen):.2%})",
    )


def _fields(hostile: Stage, eyes: Inspector, batch: Sequence[str], thread: str) -> None:
    """A proposal that is full of them: its page, its form, its run, its outcome."""
    request = hostile.ask(everywhere(batch, thread))
    seen = eyes.look(f"/requests/{request.pk}/")
    _check_shown(batch, seen["text"])
    eyes.look(f"/requests/{request.pk}/decide/?arm=modify")
    seen = eyes.look(f"/threads/riley/{thread}/")
    _check_shown(batch, seen["text"])
    result = {text[:120]: text for text in batch}
    hostile.answered(request, {"said": result, "list": list(batch)})
    seen = eyes.look(f"/requests/{request.pk}/")
    _check_shown(batch, seen["text"])


def _check_shown(batch: Sequence[str], text: str) -> None:
    """Nothing is swallowed: letters stand there, what nobody sees is named."""
    plain = re.sub(r"\s+", " ", text)
    for one in batch:
        words = re.findall(r"[A-Za-z]{4,}", one)
        longest = max(words, key=len, default="")[:60]
        assert longest in plain, one
        hidden = [c for c in one if ord(c) in HIDDEN_CODES and c not in "\n\t\r"]
        for char in hidden[:5]:
            name = f"U+{ord(char):04X}"
            assert name in plain or "more⟧" in plain, (one, name)


def _rows(hostile: Stage, eyes: Inspector, chosen: Sequence[str]) -> None:
    """One proposal a string: rows of lists, chips of sentences, log records."""
    for text in chosen:
        args = {"name": text, "to": text[:200]}
        hostile.ask({"thread": "t-rows", "tool": "t_row", "args": args})
        told = {"thread": "t-told", "tool": "t_told", "args": {"name": text}}
        assert hostile.propose(told).status_code == 201
    path = "/queue/"
    while path:
        eyes.look(path)
        path = _next(eyes, "Show more")
    path = "/log/"
    while path:
        eyes.look(path)
        path = _next(eyes, "Older")
    for path in ("/announced/", "/agents/riley/", "/agents/", "/escalations/"):
        eyes.look(path)
    for path in ("/threads/riley/t-rows/", "/threads/riley/t-told/", "/batches/"):
        eyes.look(path)
    for request in ApprovalRequest.objects.filter(proposal__tool_name="t_row")[:3]:
        eyes.look(f"/requests/{request.pk}/")
    for record in LogRecord.objects.order_by("-pk")[:3]:
        eyes.look(f"/log/{record.pk}/")


def _next(eyes: Inspector, name: str) -> str:
    """The address of the next page of a list, or empty."""
    link = eyes.page.get_by_role("link", name=name, exact=True)
    if link.count() == 0:
        return ""
    return str(link.first.get_attribute("href")).removeprefix(eyes.base)


def _mails(chosen: Sequence[str]) -> None:
    """Mails hold facts and no word of the agent's; nothing in them is unseen."""
    messages = OutboxMessage.objects.filter(task__contains="mail_").order_by("-pk")
    for message in messages[:40]:
        getattr(tasks, message.task.rsplit(".", 1)[1])(message.pk)
    assert mail.outbox
    long = [text for text in chosen if len(text) > 12]
    for one in mail.outbox:
        raw = f"{one.subject}{one.body}"
        assert not any(text in raw for text in long)
        assert not any(ord(char) in HIDDEN_CODES and char != "\n" for char in raw)
        assert "\n" not in one.subject
        assert "http://evil.example" not in raw
        assert one.content_subtype == "plain"
        assert not getattr(one, "alternatives", None)


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
    assert eyes.found.nothing, eyes.found
