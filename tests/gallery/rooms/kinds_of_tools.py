"""The view of each kind of tool, and text that lies or cannot be shown as it is."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests import factories
from tests.browser.test_pages import HOSTILE
from tests.gallery import shop
from tests.gallery.scene import Room
from tests.gallery.stage import Stage, path
from tests.reviews.presenters import kinds

from .review import REVIEW

VIEWS, MORE_VIEWS, WORDS = Room("view"), Room("views"), Room("words")
LIES = f"{HOSTILE}\nR\u0435fund"  # its second letter is Cyrillic
# The arguments of an example that the gate would not let through, made harmless.
INSTEAD: dict[str, dict[str, Any]] = {
    "call_api": {
        "method": "POST",
        "url": "https://api.partner.example:8443/v1/orders?dry=no",
        "body": {"status": "shipped", "count": 2},
    },
}


def _kind(tool: str, stage: Stage) -> str:
    args = INSTEAD.get(tool, kinds.EXAMPLES[tool][0])
    return path(stage.wants(tool, args, uncertain=True))


TOOLS = [tool for tool in kinds.EXAMPLES if tool != "delete_customer"]
for number, name in enumerate(TOOLS):
    room = VIEWS if number % 2 else MORE_VIEWS
    room.scene(name, REVIEW, "What changes", who="sue")(partial(_kind, name))


@VIEWS.scene("delete_customer", REVIEW, "What changes", who="sue")
def delete_customer(stage: Stage) -> str:
    return path(stage.deletion())


@VIEWS.scene("change_shipped_address", REVIEW, "What changes", who="sam")
def change_shipped_address(stage: Stage) -> str:
    return path(stage.address())


@WORDS.scene("hostile", REVIEW, "Addressed to the reviewer (possible manipulation)")
def hostile(stage: Stage) -> str:
    said: dict[str, Any] = {
        "rationale": LIES,
        "expected_outcome": LIES,
        "alternatives": [{"action": LIES, "why_not": LIES}],
        "evidence": [{"kind": "message", "source": "ticket 481", "text": LIES}],
    }
    return path(stage.refund(**said))


@WORDS.scene("hostile-arguments", REVIEW, "What changes")
def hostile_arguments(stage: Stage) -> str:
    letter = {
        "to": ["casey@mail.example"],
        "subject": " ".join(LIES.split())[:200],
        "body": LIES,
    }
    return path(stage.wants("send_email", letter))


@WORDS.scene("long", REVIEW, "Long review")
def long(stage: Stage) -> str:
    body = "\n".join(f"Line {number} of a very long letter." for number in range(180))
    to = [f"customer-{number}@mail.example" for number in range(30)]
    return path(stage.mail(to=to, body=body))


@WORDS.scene("silent", REVIEW, "What changes")
def silent(stage: Stage) -> str:
    nothing: dict[str, Any] = {"rationale": "", "expected_outcome": ""}
    return path(stage.refund(**nothing, evidence=[], alternatives=[], checkpoint=None))


@WORDS.scene("no-before", REVIEW, "No before-state available.", who="sue")
def no_before(stage: Stage) -> str:
    return path(stage.kind("run_program"))


@WORDS.scene("hidden", REVIEW, "Reveal a hidden value…", who="sue")
def hidden(stage: Stage) -> str:
    document = shop.policy()
    document["tools"]["send_email"]["sensitive"] = ["body"]
    factories.policy(stage.gate.people, document)
    return path(stage.mail())
