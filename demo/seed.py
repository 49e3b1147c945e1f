"""Everything the demo needs inside Holdpoint: people, policy, and Riley with a key.

It runs at every start. What is there and works is kept; what is missing is made, by
the same operations that people use.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents import keys, registry
from agents.models import Agent
from journal.errors import InvalidAgentKey
from policies import active, versions
from policies.documents import parse_document
from policies.models import Person, PolicyVersion

from . import cast, handover

POLICY = Path(__file__).parent / "policy.yaml"
RILEY, VERSION = "riley", "1"
TOOLS = (
    "look_up_order",
    "check_inventory",
    "draft_reply",
    "add_label",
    "send_email",
    "create_return_label",
    "process_refund",
    "change_shipped_address",
    "delete_customer",
)


def seed(*, state: Path, base_url: str, store_url: str) -> Path:
    """Make what is missing and write demo.json. Gives its path."""
    path = state / "demo.json"
    kept = handover.read(path)
    people = cast.people()
    version = _policy(people, store_url, kept.get("policy_version"))
    handover.write(
        path,
        {
            "base_url": base_url,
            "store_url": store_url,
            "agent_key": _agent_key(people, str(kept.get("agent_key", ""))),
            "logins": cast.logins(people, kept.get("logins", {})),
            "policy_version": version,
        },
    )
    return path


def store_url(environ: Mapping[str, str]) -> str:
    """Where the store answers: as said, or on loopback at its port."""
    port = environ.get("STORE_PORT", "8010")
    return environ.get("STORE_URL") or f"http://127.0.0.1:{port}"


def _policy(people: Mapping[str, Person], url: str, ours: Any) -> int | None:
    """Put the shipped policy in force; the number of the version that is ours.

    Where people have put another one in force since, theirs stays.
    """
    ruling = active.find_active_policy()
    if ruling is not None and _same(ruling, url):
        return ruling.number
    if ruling is not None and ruling.number != ours:
        return None
    draft = versions.save_draft(
        text_or_mapping=POLICY.read_text("utf-8"),
        author=people["administrator"],
        variables={"STORE_URL": url},
    )
    cast.admit(people)
    return versions.activate_version(
        version_id=draft.pk, by=people["administrator2"]
    ).number


def _same(version: PolicyVersion, url: str) -> bool:
    """Whether a version says what the file says, at this address of the store."""
    document = parse_document(POLICY.read_text("utf-8"), variables={"STORE_URL": url})
    return version.digest == active.compute_digest(active.to_plain_data(document))


def _agent_key(people: Mapping[str, Person], kept: str) -> str:
    """Riley's key: the kept one as long as it works, else a new one."""
    riley = _riley(people)
    try:
        if keys.authenticate_key(kept).agent == riley:
            return kept
    except InvalidAgentKey:
        pass
    return keys.issue_key(agent=riley, by=people["owner"])


def _riley(people: Mapping[str, Person]) -> Agent:
    found = Agent.objects.filter(slug=RILEY).first()
    return found or registry.register_agent(
        slug=RILEY,
        name="Riley",
        owner=people["owner"],
        tools=TOOLS,
        by=people["administrator"],
        version=VERSION,
    )
