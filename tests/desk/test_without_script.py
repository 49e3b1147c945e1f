"""What stands on a page before, or without, any script."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from tests.conftest import Gate
from tests.desk.batches.batch_form import Form, url
from tests.desk.conftest import SignIn
from tests.reviews import states
from tests.reviews.batches.batching import formed


class Visible(HTMLParser):
    """The text of a page that a browser shows."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self.inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.inside = tag

    def handle_data(self, data: str) -> None:
        if self.inside not in {"script", "style"}:
            self.text += data


@pytest.mark.parametrize("place", ["request", "queue", "run", "batch"])
def test_a_recall_window_says_how_long_it_still_is(
    gate: Gate, as_: SignIn, place: str
) -> None:
    client = as_("rita")
    if place == "batch":
        states.recall_windows(gate)
        batch = formed(gate)
        Form(client, batch).open_samples().press("arm:approve").press("commit")
        paths = [url(batch)]
    else:
        request = states.recallable(gate)
        thread = request.proposal.thread
        paths = {
            "request": [f"/requests/{request.pk}/"],
            "queue": ["/queue/?tab=done", "/queue/?tab=waiting"],
            "run": [f"/threads/riley/{thread}/"],
        }[place]
    pages = (client.get(path).content.decode() for path in paths)
    texts = (Visible(page).text for page in pages)
    seen = " ".join("".join(texts).split())
    assert "{}" not in seen
    said = seen.partition("Approved, can be undone for ")[2]
    assert said[:1].isdigit(), seen
