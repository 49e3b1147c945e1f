"""The review page of what was proposed under another policy. A room of its own: the
policy of one scene is in force for those after it."""

from __future__ import annotations

from tests import factories
from tests.gallery import shop
from tests.gallery.scene import Room
from tests.gallery.stage import Stage, path

ROOM = Room("policy")
REVIEW = "reviews:request_detail"


def _add_rule(stage: Stage, when: str) -> None:
    """Another policy in force, with one rule more."""
    document = shop.policy()
    document["rules"].append(
        {
            "id": "refund.care",
            "text": "While a product is recalled, refunds need two supervisors.",
            "tools": ["process_refund"],
            "when": when,
            "then": {"tier": "escalate"},
        }
    )
    factories.policy(stage.gate.people, document)


@ROOM.scene("same", REVIEW, "It asks for the same.")
def same(stage: Stage) -> str:
    request = stage.refund("59.00")
    _add_rule(stage, "false")
    return path(request)


@ROOM.scene("stricter", REVIEW, "would be refused before it runs")
def stricter(stage: Stage) -> str:
    request = stage.refund()
    _add_rule(stage, "true")
    return path(request)


def _slow(stage: Stage) -> None:
    """An hour of reading is asked for, and a question with each approval."""
    document = shop.policy()
    document["desk"] = {"time_floor": {"high": 3600}, "micro_check": {"high": 1}}
    factories.policy(stage.gate.people, document)


@ROOM.scene("reading", REVIEW, "at least 3600 seconds.")
def reading(stage: Stage) -> str:
    _slow(stage)
    return path(stage.refund("59.00"))


@ROOM.scene("reading-armed", "reviews:decide", "at least 3600 seconds.")
def reading_armed(stage: Stage) -> str:
    _slow(stage)
    return f"{path(stage.refund('49.00'), 'decide')}?arm=approve"
