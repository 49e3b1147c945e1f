"""The people who may not decide a proposal because they are behind it
(docs/invariants.md I9): the agent's owner, the people whom the agent names, and the
people who may not decide its parent proposal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from policies import solo
from policies.models import Person
from reviews.models import Proposal
from reviews.people import identities

from .models import Agent

_IDENTITY_FIELDS = ("public_id", "username", "email", "first_name", "last_name")


@dataclass(frozen=True, slots=True)
class Delegation:
    """Public ids of the people who may not decide a proposal. `barred` are the owner
    and the people named, who may therefore see the proposal; `kept_out` are the others,
    who may not. `resembles`: some name matches nobody exactly but looks like a
    person's. `claimed` are those among them whom the agent chose: by naming them,
    somebody like them, or a parent proposal."""

    barred: Sequence[str]
    kept_out: Sequence[str] = ()
    resembles: bool = False
    claimed: Sequence[str] = ()


def build_delegation(
    agent: Agent, behalf: Mapping[str, Any], parent: str
) -> Delegation:
    """Find the people behind a proposal of `agent`. `behalf` is its `on_behalf_of` as
    JSON, `parent` the id of the proposal that it is part of, or "". In solo mode nobody
    is kept out."""
    if solo.is_solo():
        return Delegation(())
    texts = {str(behalf.get("id", "")), *map(str, behalf.get("chain", []))}
    named, similar = _match_people([text for text in texts if text.strip()])
    barred = {agent.owner.public_id, *named}
    behind = set(_list_barred_from(parent))
    kept_out = {*similar, *behind} - barred
    claimed = {*named, *similar, *behind} - {agent.owner.public_id}
    return Delegation(
        sorted(barred), sorted(kept_out), bool(similar), tuple(sorted(claimed))
    )


def _match_people(texts: Sequence[str]) -> tuple[set[str], set[str]]:
    """Return the ids of the people whom the texts name, and of those who resemble a
    text that names nobody."""
    named: set[str] = set()
    similar: set[str] = set()
    rows = Person.objects.values_list(*_IDENTITY_FIELDS) if texts else []
    people = {row[0]: identities.build_identity(*row) for row in rows}
    for text in texts:
        exact = {
            pk
            for pk, identity in people.items()
            if identities.names_person(text, identity)
        }
        named |= exact
        if not exact:
            similar |= {
                p
                for p, identity in people.items()
                if identities.resembles_identity(text, identity)
            }
    return named, similar


def _list_barred_from(parent: str) -> Sequence[str]:
    if not parent:
        return ()
    row = Proposal.objects.only("barred", "kept_out").filter(pk=parent).first()
    return [*row.barred, *row.kept_out] if row else ()
