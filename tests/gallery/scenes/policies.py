"""The policy: its versions, the text of a new one, and what becomes of a draft."""

from __future__ import annotations

from policies import versions
from policies.documents.source import write_source
from policies.models import PolicyVersion
from tests.gallery.scene import SceneGroup, Submission
from tests.gallery.store import LAPTOP, StoreGate
from tests.policies.security_key import give_key

POLICIES = SceneGroup(
    "policies",
    shows=(
        "policies:policies",
        "policies:tools",
        "policies:policy",
        "policies:new_policy",
        "policies:check_draft",
        "policies:waiting",
    ),
)
RULE, LAXER = "args.amount > 50000", "args.amount > 90000"
UNDONE = "reversible: false"


@POLICIES.preparation
def ask_people(gate: StoreGate) -> None:
    """Requests that wait while the policy changes."""
    gate.refund("24.00")
    gate.refund("610.00", LAPTOP)


POLICIES.add("tools", "Who decides", "/tools/", "adam")
POLICIES.add("tools-reviewer", "Who decides", "/tools/", "rita")
POLICIES.add("one", "Refund", "/policies/2/", "adam")
POLICIES.add("new", "Save as a draft", "/policies/new/", "adam")


def change_policy(old: str, new: str, *more: tuple[str, str]) -> str:
    """The text of the active policy with changes."""
    text = write_source(PolicyVersion.objects.get(status="active").document)
    for before, after in ((old, new), *more):
        assert before in text
        text = text.replace(before, after, 1)
    return text


@POLICIES.scene("wrong", "Save as a draft", "adam")
def show_wrong(gate: StoreGate) -> Submission:
    """A text with an error, and where it is."""
    text = change_policy(RULE, "args.amuont > 50000")
    return Submission("/policies/new/", {"document": text})


@POLICIES.scene("checked", "parts ask for less", "adam")
def show_checked(gate: StoreGate) -> Submission:
    """What a text would ask less for, before it is saved."""
    text = change_policy(RULE, LAXER)
    return Submission("/policies/new/check/", {"document": text})


def save(gate: StoreGate) -> PolicyVersion:
    more = ("zone: America/New_York", "zone: Europe/Berlin")
    text = change_policy(
        RULE, LAXER, more, ("args.amount > 1000000", "args.amount > 800000")
    )
    return versions.save_draft(text_or_mapping=text, author=gate.adam)


@POLICIES.scene("draft", "Activate version", "alma")
def show_draft(gate: StoreGate) -> str:
    """What a draft of another administrator would change."""
    return f"/policies/{save(gate).number}/"


@POLICIES.scene("waiting", "Back to the draft", "alma")
def show_waiting(gate: StoreGate) -> str:
    return f"/policies/{save(gate).number}/waiting/"


@POLICIES.scene("refuse", "Enter why this draft is refused", "alma")
def show_refuse(gate: StoreGate) -> Submission:
    return Submission(f"/policies/{save(gate).number}/refuse/", {"reason": " "})


@POLICIES.scene("refused", "Refused by", "alma")
def show_refused(gate: StoreGate) -> str:
    draft = save(gate)
    reason = "The limit stays until the audit in May is over."
    versions.refuse_draft(version_id=draft.pk, by=gate.alma, reason=reason)
    return f"/policies/{draft.number}/"


def save_with_passkeys(gate: StoreGate) -> PolicyVersion:
    """A draft that takes passkeys alone where much is at stake."""
    document = PolicyVersion.objects.get(status="active").document
    levels = {"high": ["passkey"], "critical": ["passkey"]}
    document["desk"]["step_up"] = levels
    return versions.save_draft(text_or_mapping=document, author=gate.adam)


@POLICIES.scene("covers", "Too few: it cannot be activated.", "alma")
def show_covers(gate: StoreGate) -> str:
    """A draft that takes what people lack, and who lacks it."""
    give_key(gate.sue)
    return f"/policies/{save_with_passkeys(gate).number}/"


POLICIES.add("list", "Refused by", "/policies/", "adam")
POLICIES.add("retired", "New draft of version", "/policies/1/", "adam")
