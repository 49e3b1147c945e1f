"""The form of a batch, as a person without JavaScript fills it."""

from __future__ import annotations

import re
from typing import Any

from django.test import Client

from reviews.models import ApprovalRequest, Batch
from tests.markup import read_page

ASKED = {"HX-Request": "true"}


def url(batch: Batch, *more: str) -> str:
    return "/".join(["/batches", batch.pk, *more, ""])


def inputs(text: str, name: str) -> list[str]:
    """The values of all inputs of a name, as a browser would send them."""
    tags = re.findall(rf'<input[^>]* name="{name}"[^>]*>', text)
    values = [re.search(r'value="([^"]*)"', tag) for tag in tags]
    return [found[1] for found in values if found]


class Form:
    """The page's form as a person without JavaScript fills it."""

    def __init__(self, client: Client, batch: Batch) -> None:
        self.client, self.batch = client, batch
        self.text = read_page(client.get(url(batch)))
        self.items = inputs(self.text, "item")
        self.opened: list[str] = []
        self.before: list[str] = []
        self.status = 200

    def press(self, do: str, **fields: Any) -> Form:
        sent = {
            "do": do,
            "row": inputs(self.text, "row"),
            "item": self.items,
            "opened": self.opened,
            "before": self.before,
            "verdict": inputs(self.text, "verdict"),
            "digest": inputs(self.text, "digest"),
            "seen": inputs(self.text, "seen"),
            **fields,
        }
        response = self.client.post(url(self.batch, "decide"), sent)
        self.status = response.status_code
        if self.status == 303:
            response = self.client.get(response["Location"])
        self.text = read_page(response)
        self.opened = inputs(self.text, "opened")
        self.before = inputs(self.text, "before")
        return self

    def open_samples(self) -> Form:
        for row in re.findall(
            r'<b class="xs">Sample</b><button[^>]*value="(open:[^"]+)"', self.text
        ):
            self.press(row)
        return self

    @property
    def digest(self) -> str:
        found = re.search(r'data-testid="batch-digest" title="([^"]+)"', self.text)
        return found[1] if found else ""


def statuses() -> set[str]:
    return set(ApprovalRequest.objects.values_list("status", flat=True))
