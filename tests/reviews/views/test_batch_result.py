"""What came of a batch, item by item, and what can still be done with it."""

from __future__ import annotations

from reviews.choices import RequestStatus
from tests import worlds
from tests.conftest import Gate
from tests.reviews import states
from tests.reviews.batching import formed, ran
from tests.reviews.views.batch_form import ASKED, Form, source, statuses, url
from tests.reviews.views.conftest import SignIn


def test_the_result_page_recalls_retries_and_runs_the_rest(
    gate: Gate, as_: SignIn
) -> None:
    states.recall_windows(gate)
    batch = formed(gate, *["7.00"] * 4)
    client = as_("rita")
    Form(client, batch).open_samples().press("arm:approve").press("commit", stop="1")
    text = source(client.get(url(batch)))
    assert "Recall all 4" in text
    client.post(url(batch, "recall"))
    assert statuses() == {RequestStatus.PENDING}
    assert "Recall all" not in source(client.get(url(batch)))


def test_what_failed_is_retried_and_what_waits_is_run(gate: Gate, as_: SignIn) -> None:
    worlds.WORLD["declined"] = {"C-1"}
    batch = formed(gate, *["7.00"] * 4)
    client = as_("rita")
    Form(client, batch).open_samples().press("arm:approve").press("commit", stop="1")
    ran(batch)
    text = source(client.get(url(batch)))
    assert "Retry the 1 failed" in text
    assert "Run the other 2" in text
    assert text.count("Not run") == 2
    client.post(url(batch, "run"))
    ran(batch)
    worlds.WORLD["declined"] = set()
    client.post(url(batch, "retry"))
    ran(batch)
    assert "<b>4</b> done" in source(client.get(url(batch)))


def test_the_fragment_is_empty_while_nothing_changes(gate: Gate, as_: SignIn) -> None:
    states.recall_windows(gate)
    batch = formed(gate)
    client = as_("rita")
    Form(client, batch).open_samples().press("arm:approve").press("commit")
    first = client.get(url(batch, "live"), headers=ASKED)
    again = client.get(
        url(batch, "live"), headers={**ASKED, "If-None-Match": first["ETag"]}
    )
    assert (first.status_code, again.status_code) == (200, 204)


def test_what_was_recalled_stays_on_the_page_and_says_so(
    gate: Gate, as_: SignIn
) -> None:
    states.recall_windows(gate)
    batch = formed(gate, *["7.00"] * 4)
    client = as_("rita")
    Form(client, batch).open_samples().press("arm:approve").press("commit")
    client.post(url(batch, "recall"))
    text = source(client.get(url(batch)))
    assert text.count("Recalled. Nothing was executed.") == 4
    assert "4 repayments" in text
    assert batch.pk in source(client.get("/batches/"))


def test_the_result_says_the_verdict_and_leads_to_the_page(
    gate: Gate, as_: SignIn
) -> None:
    batch = formed(gate)
    Form(as_("rita"), batch).press("arm:reject").press(
        "commit", reason_code="duplicate"
    )
    for name, opens in (("rita", True), ("tom", False), ("sue", True)):
        text = source(as_(name).get(url(batch)))
        assert "Rejected " in text
        assert ("The page as it was seen" in text) is opens
