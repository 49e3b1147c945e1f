"""T14: one request a naughty string: rows of every list, batches, failures, records;
and what leaves the desk from them: mails and exported files. I31."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import pytest

from journal.models import LogRecord
from reviews.batches import formation
from reviews.models import ApprovalRequest, Batch
from reviews.presenters.inert import CHIP_LENGTH
from tests.browser import leaving
from tests.browser.conftest import SitDown
from tests.browser.hostile import MARK, Stage, sampled, stage
from tests.browser.inspecting import Inspector
from tests.browser.naughty import check_shown, strings
from tests.conftest import Gate
from tests.reviews.batches import batching

pytestmark = [pytest.mark.browser, pytest.mark.proof, pytest.mark.timeout(0)]

A_BATCH = 50
LISTS = ("/queue/", "/escalations/", "/announced/", "/unknown/", "/batches/")


@pytest.fixture
def hostile(gate: Gate) -> Stage:
    return stage(gate)


def test_every_row_and_every_file_shows_them_as_text(
    hostile: Stage,
    sit_down: SitDown,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    every = strings()
    chosen = sampled(every, proof_n(small=8, full=len(every)))
    desk = sit_down("sue")
    eyes = Inspector(desk.page, desk.base)
    for number, some in enumerate(_chunks(chosen)):
        _batch(hostile, eyes, some, f"t-row-{number}")
        _failures(hostile, eyes, some, f"t-told-{number}")
    records = _log(eyes)
    assert eyes.found.nothing, str(eyes.found)
    desk.said.clear()
    mails = leaving.mails(chosen)
    cells = leaving.files(hostile.gate.otto, chosen)
    record_proof(
        "T14",
        f"{len(chosen)} strings in rows of lists and batches, failures and "
        f"{records:,} log records, on {eyes.found.pages} pages: "
        f"{eyes.found.said(len(chosen))}; {mails:,} mails without a word of them, "
        f"{cells:,} exported cells, none a formula, none with a character unseen",
    )


def _chunks(chosen: Sequence[str]) -> Iterator[list[str]]:
    left = iter(chosen)
    while some := list(itertools.islice(left, A_BATCH)):
        yield some


def _batch(hostile: Stage, eyes: Inspector, some: Sequence[str], thread: str) -> None:
    """Alike requests: their rows, the page that decides on all, what came of each."""
    for text in some:
        args = {"name": text, "to": f"{text[:200]} {MARK}"}
        ask = hostile.ask({"thread": thread, "tool": "t_row", "args": args})
    formation.form_missed_batches()
    batch = Batch.objects.get(items__request=ask.pk)
    for path in LISTS:
        eyes.look(path)
    path = f"/batches/{batch.pk}/"
    inside = [text for text in some if text in _names(batch)]
    assert len(inside) > len(some) // 2  # what looks encoded is decided alone
    check_shown(inside, eyes.look(path)["text"], redacted=False)
    eyes.narrow(path)
    _open_all(eyes)
    check_shown(inside, eyes.look_here(path)["text"], redacted=False)
    batching.decide(batch, hostile.gate.sue, stop_at_failure=False)
    for item in batch.items.select_related("request"):
        text = _name(item.request)
        said = {"code": text[:64], "detail": f"{text} {MARK}"[:2000]}
        hostile.done(item.request.proposal_id, status="failed", **said)
    check_shown(inside, eyes.look(path)["text"], redacted=False)
    eyes.look(f"/threads/riley/{thread}/")


def _names(batch: Batch) -> set[str]:
    return {_name(item.request) for item in batch.items.select_related("request")}


def _name(request: ApprovalRequest) -> str:
    return str(request.sealed.revision.args["name"])


def _open_all(eyes: Inspector) -> None:
    """Every row of a batch, as who looks at the samples opens it."""
    for button in eyes.page.locator("[data-open]").all():
        button.click()
        eyes.page.locator("tr.open").last.wait_for()


def _failures(
    hostile: Stage, eyes: Inspector, some: Sequence[str], thread: str
) -> None:
    """What ran without asking and then failed, or may have run: in whose words."""
    for number, text in enumerate(some):
        body = {"thread": thread, "tool": "t_told", "args": {"name": text}}
        status = ("failed", "unknown")[number % 2]
        said = {"code": text[:64], "detail": f"{text} {MARK}"[:2000]}
        hostile.tell(body, status=status, **said)
    whole = [text for text in some if len(text) <= CHIP_LENGTH]
    for path in ("/announced/", f"/threads/riley/{thread}/"):
        check_shown(whole, eyes.look(path)["text"], redacted=False)
    eyes.look("/unknown/")
    eyes.look("/agents/riley/")


def _log(eyes: Inspector) -> int:
    """Every page of the log, and a record of every kind on its own."""
    path = "/log/"
    while path:
        eyes.look(path)
        path = _next(eyes, "Older")
    kinds = LogRecord.objects.order_by("kind", "-pk").distinct("kind")
    for pk in kinds.values_list("pk", flat=True):
        eyes.look(f"/log/new/{pk}/")
    return LogRecord.objects.count()


def _next(eyes: Inspector, name: str) -> str:
    """The address of the next page of a list, or empty."""
    link = eyes.page.get_by_role("link", name=name, exact=True)
    if link.count() == 0:
        return ""
    return str(link.first.get_attribute("href")).removeprefix(eyes.base)
