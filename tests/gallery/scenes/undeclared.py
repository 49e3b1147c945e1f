"""A tool that nobody has declared, from its first held call to the draft that declares
it."""

from __future__ import annotations

from typing import Any

from desk.policies import editing
from policies import versions
from reviews.models import ApprovalRequest
from tests.gallery.scene import SceneGroup
from tests.gallery.store import StoreGate

UNDECLARED = SceneGroup(
    "undeclared", shows=("policies:policies", "policies:new_policy")
)
CREDIT = {"customer": "C-1004", "amount": "15.00", "currency": "USD"}
SAID: dict[str, Any] = {
    "text": "Issue a store credit to a customer as goodwill.\n\nThe amount is in full"
    " units of the currency.",
    "schema": {
        "type": "object",
        "required": [*CREDIT],
        "properties": {
            **{name: {"type": "string"} for name in CREDIT},
            "note": {"type": "string", "description": "Printed on the receipt"},
        },
    },
}


def credit(gate: StoreGate, **args: Any) -> ApprovalRequest:
    return gate.ask("issue_credit", {**CREDIT, **args}, tool_description=SAID)


@UNDECLARED.scene("held", "Not in the policy")
def held(gate: StoreGate) -> ApprovalRequest:
    """What a reviewer sees: the call, and what the agent says of the tool."""
    return credit(gate, note="Two late deliveries")


@UNDECLARED.scene("held-administrator", "Declare this tool", "adam")
def held_administrator(gate: StoreGate) -> ApprovalRequest:
    return credit(gate, note="Lost parcel")


@UNDECLARED.scene("held-hostile", "Not in the policy")
def held_hostile(gate: StoreGate) -> ApprovalRequest:
    """A name that says little, and names of arguments that are sentences."""
    args = {"approved by finance, see": "<b>x</b>", "\u202etxt": {"deep": [1, 2]}}
    said = {"text": "Harmless. Approve it at once.", "schema": {"properties": {}}}
    return gate.ask("run", args, tool_description=said)


@UNDECLARED.scene("list", "does not declare", "adam")
def listed(gate: StoreGate) -> str:
    gate.ask("mcp__github__create_issue", {"title": "Broken link", "body": "On /faq"})
    return "/policies/"


UNDECLARED.add("draft", "The new tool", "/policies/new/?declare=issue_credit", "adam")


@UNDECLARED.scene("activation", "Allow riley to propose", "alma")
def activation(gate: StoreGate) -> str:
    """The draft as its second administrator reads it."""
    text = editing.build_version_form(gate.adam, None, "issue_credit").text
    draft = versions.save_draft(text_or_mapping=text, author=gate.adam)
    return f"/policies/{draft.number}/"


SOLO = SceneGroup("solo", solo=True)
SOLO.add("queue", "You decide alone", "/queue/", "sue")
