"""Everything that the demo needs inside Counterseal: people, policy, and Riley's key.

It runs at every start. It keeps what is there and works, and creates what is missing.
`$STATE/demo.json` tells people and Riley how to sign in.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group
from django.db import transaction
from guardian.shortcuts import assign_perm

from agents import keys, registry
from agents.models import Agent
from agents.registry import NewAgent
from hitl.local.keys import replace_key
from journal import ids
from journal.errors import InvalidAgentKey
from policies import active
from policies.choices import Role
from policies.documents import parse_document
from policies.models import Person, PolicyVersion, Queue
from reviews.people import tokens
from world.cast import put_in_force

POLICY = Path(__file__).with_name("policy.yaml")
TOOLS = tuple(yaml.safe_load(POLICY.read_text("utf-8"))["tools"])
REVIEWED = ("reads", "mail", "labels", "refunds", "customers", "unknown")
"""The queues of reviewers; supervisors decide in all."""
CEILING_MINOR = 50_000


class Account(NamedTuple):
    """One person, as demo.json, the sign-in page and their colleagues call them."""

    name: str
    username: str
    full_name: str
    role: Role


ACCOUNTS = (
    Account("reviewer", "rita", "Rita Okafor", Role.REVIEWER),
    Account("reviewer2", "tom", "Tom Brandt", Role.REVIEWER),
    Account("supervisor", "sue", "Sue Lindqvist", Role.SUPERVISOR),
    Account("supervisor2", "sam", "Sam Adeyemi", Role.SUPERVISOR),
    Account("administrator", "adam", "Adam Novotny", Role.ADMINISTRATOR),
    Account("administrator2", "alma", "Alma Reyes", Role.ADMINISTRATOR),
    Account("auditor", "otto", "Otto Bergmann", Role.AUDITOR),
    Account("owner", "owen", "Owen Castellan", Role.OWNER),
)
People = Mapping[str, Person]


def build_store_url() -> str:
    """Where `counterseal up --demo` runs the store."""
    return f"http://127.0.0.1:{os.environ.get('STORE_PORT', '8010')}"


def seed(*, state: Path, base_url: str, store_url: str) -> Path:
    """Create what is missing and write demo.json. Returns its path."""
    path = state / "demo.json"
    earlier = _read_file(path)
    people = ensure_people()
    data = {
        "base_url": base_url,
        "store_url": store_url,
        "policy_version": _ensure_policy(
            people, store_url, earlier.get("policy_version")
        ),
        "agent_key": _ensure_key(people, str(earlier.get("agent_key", ""))),
        "logins": _ensure_logins(people, earlier.get("logins", {})),
    }
    state.mkdir(parents=True, exist_ok=True)
    replace_key(path, json.dumps(data, indent=2))
    return path


def _read_file(path: Path) -> dict[str, Any]:
    """The file of an earlier run; empty where there is none, or no whole one."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        data: dict[str, Any] = json.loads(path.read_text())
        return data
    return {}


def ensure_people() -> dict[str, Person]:
    """The demo's people by the names of their accounts; creates who is missing."""
    return {account.name: _ensure_person(account) for account in ACCOUNTS}


@transaction.atomic(durable=True)
def _ensure_person(account: Account) -> Person:
    person = Person.objects.filter(username=account.username).first()
    if person is not None:
        return person
    first, _, last = account.full_name.partition(" ")
    limited = account.role is Role.REVIEWER
    person = Person.objects.create_user(
        account.username,
        f"{account.username}@northgate-electronics.example",
        first_name=first,
        last_name=last,
        ceiling_minor=CEILING_MINOR if limited else None,
        ceiling_currency="USD" if limited else "",
    )
    person.groups.add(Group.objects.get_or_create(name=account.role.value)[0])
    return person


def _ensure_policy(people: People, store_url: str, ours: int | None) -> int | None:
    """Activate the shipped policy. Returns the number of its version, or None where
    people have activated another policy since: theirs stays."""
    text, variables = POLICY.read_text("utf-8"), {"STORE_URL": store_url}
    current = active.find_active_policy()
    if current is not None and _is_same(current, text, variables):
        return current.number
    if current is not None and current.number != ours:
        return None
    return put_in_force(
        text,
        people["administrator"],
        people["administrator2"],
        admit=lambda: admit_deciders(people),
        variables=variables,
    ).number


def _is_same(version: PolicyVersion, text: str, variables: Mapping[str, str]) -> bool:
    document = parse_document(text, variables=variables)
    return version.digest == active.compute_digest(active.to_plain_data(document))


@transaction.atomic(durable=True)
def admit_deciders(people: People) -> None:
    """Admit reviewers to their queues, and supervisors to every queue there is."""
    for queue in Queue.objects.all():
        for account in ACCOUNTS:
            reviews = account.role is Role.REVIEWER and queue.name in REVIEWED
            if reviews or account.role is Role.SUPERVISOR:
                assign_perm("policies.decide", people[account.name], queue)


def _ensure_key(people: People, key: str) -> str:
    """Riley's key: the kept one as long as it works, otherwise a new one."""
    riley = Agent.objects.filter(slug="riley").first() or registry.register_agent(
        new=NewAgent("riley", "Riley", people["owner"], TOOLS, version="1"),
        by=people["administrator"],
    )
    with contextlib.suppress(InvalidAgentKey):
        if keys.authenticate_key(key).agent == riley:
            return key
    return keys.issue_key(agent=riley, by=people["owner"])


def _ensure_logins(
    people: People, earlier: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, str]]:
    """User name, password and token of each person. A password that its person has
    changed stays theirs, and the earlier one no longer works."""
    passwords = {name: login["password"] for name, login in earlier.items()}
    missing = [
        name
        for name, person in people.items()
        if name not in passwords or not person.has_usable_password()
    ]
    passwords |= {name: _generate_password() for name in missing}
    # Hashing is slow by design, so all cores share it.
    with ThreadPoolExecutor() as pool:
        hashes = pool.map(make_password, [passwords[name] for name in missing])
        for name, hashed in zip(missing, hashes, strict=True):
            people[name].password = hashed
            people[name].save(update_fields=["password"])
    return {
        name: {
            "username": person.username,
            "password": passwords[name],
            "token": _ensure_token(person, earlier.get(name, {}).get("token", "")),
        }
        for name, person in people.items()
    }


def _ensure_token(person: Person, token: str) -> str:
    with contextlib.suppress(InvalidAgentKey):
        if tokens.authenticate_token(token) == person:
            return token
    return tokens.create_token(person=person, name="demo")


def _generate_password() -> str:
    """80 random bits in four groups that people can read out and type."""
    letters = [secrets.choice(ids.ALPHABET) for _ in range(16)]
    return "-".join("".join(letters[start : start + 4]) for start in range(0, 16, 4))
