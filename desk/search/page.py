"""What the search of every page finds: pages, requests, people, agents and runs that
the person may see, a few of each.

Each lookup walks an index and stops after a few rows, since it is asked while a person
types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Q
from django.urls import reverse
from django.utils.http import urlencode

from agents.models import Thread
from policies.models import Person
from reviews import permissions
from reviews.presenters.shapes import SentencePart
from reviews.roles import Permission

from ..agents.visibility import select_visible_agents
from ..components import navigation, visibility
from ..log import search as words
from ..queue.rows import list_queue_rows
from ..queue.search import FoundRequest

MAX_HITS = 6  # of each kind
MAX_PROPOSALS = 300  # newest proposals with these words among which requests are sought
MAX_QUERY = 200  # characters
# Pages that the navigation does not list, with what all who may open them have.
OTHER_PAGES: tuple[tuple[str, str, Permission | None, str], ...] = (
    ("Workload", "reviews:load", Permission.PLAN_ON_CALL, "on duty expiring"),
    ("On call", "reviews:on_call", Permission.SEE_POLICIES, "shifts rota drills"),
    ("Standing grants", "reviews:standing_grants", None, "allowed always"),
    ("Invite a person", "reviews:invite", Permission.MANAGE_PEOPLE, "new user account"),
    ("Register an agent", "agents:register_agent", Permission.MANAGE_AGENTS, "new key"),
    ("Stop", "reviews:stop", None, "pause halt everything"),
    (
        "Preferences",
        "reviews:me",
        None,
        "settings profile account display shortcuts notifications dark time zone",
    ),
    ("Change password", "reviews:own_password", None, "account settings"),
    ("Sessions", "reviews:sessions", None, "signed in devices browsers sign out"),
    (
        "Second factor",
        "reviews:second_factor",
        None,
        "authenticator app totp 2fa mfa two-factor recovery codes",
    ),
    ("Passkeys", "reviews:passkeys", None, "security key webauthn fido second factor"),
    ("Substitute", "reviews:substitute", None, "away absence holiday stand in"),
    (
        "Provisioning",
        "reviews:provisioning",
        Permission.SEE_PEOPLE,
        "scim single sign-on sso oidc identity provider groups",
    ),
    ("API tokens", "reviews:tokens", None, "scripts keys password"),
    ("Help and shortcuts", "reviews:help", None, "keys"),
)


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One line that leads to a page. `text` is an agent's or a person's; `sentence`
    is what a request will do, and `note` Counterseal's own words."""

    url: str
    label: str = ""
    text: str = ""
    sentence: tuple[SentencePart, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class SearchGroup:
    label: str
    hits: list[SearchHit]


@dataclass(frozen=True, slots=True)
class SearchPage:
    """The hits by kind. Without a query, the pages."""

    query: str
    groups: list[SearchGroup] = field(default_factory=list)
    log_url: str = ""  # the same words in the audit log


def build_search_page(person: Person, typed: str, now: datetime) -> SearchPage:
    """Build the page of what this person typed, in at most eight queries."""
    query = " ".join(typed.split())[:MAX_QUERY]
    groups = [SearchGroup("Pages", list(_list_pages(person, query)))]
    if not query:
        return SearchPage("", groups)
    kinds = {
        "Requests": _list_requests(person, query, now),
        "People": _list_people(person, query),
        "Agents": _list_agents(person, query),
        "Runs": _list_runs(person, query),
    }
    groups += [SearchGroup(label, hits) for label, hits in kinds.items()]
    log_url = f"{reverse('reviews:log')}?{urlencode({'q': query})}"
    return SearchPage(query, [group for group in groups if group.hits], log_url)


def _list_pages(person: Person, query: str) -> Iterator[SearchHit]:
    typed = words.fold_text(query).split()
    for label, url, other in _select_pages(person):
        known = words.fold_text(f"{label} {other}").split()
        if all(any(word.startswith(part) for word in known) for part in typed):
            yield SearchHit(url, label)


def _select_pages(person: Person) -> Iterator[tuple[str, str, str]]:
    """Label, address and other words of each page that this person may open."""
    for _, destinations in navigation.list_destinations(person):
        for place in destinations:
            yield place.label, place.url, place.words
    for label, page, needs, other in OTHER_PAGES:
        if needs is None or permissions.has_permission(person, needs):
            yield label, reverse(page), other


def _list_requests(person: Person, query: str, now: datetime) -> list[SearchHit]:
    """The newest requests with this number or these words."""
    visible = visibility.select_visible_requests(person)
    asked = words.build_search_query(query)
    proposals: Iterable[str] = ()
    if asked:
        entries = words.select_entries(asked)
        proposals = list(
            entries.values_list("revision__proposal", flat=True)[:MAX_PROPOSALS]
        )
    named = Q(pk=query.lower()) | Q(proposal=query.lower())
    fitting = visible.filter(named | Q(proposal__in=proposals)).order_by("-opened_at")
    ids = list(fitting.values_list("pk", flat=True)[:MAX_HITS])
    rows = list_queue_rows([FoundRequest(pk) for pk in ids], person, now, settled=True)
    return [
        SearchHit(
            row.head.url,
            sentence=row.head.effect,
            note=row.state.word if row.state else "Pending",
        )
        for row in rows
    ]


def _list_people(person: Person, query: str) -> list[SearchHit]:
    if not permissions.has_permission(person, Permission.SEE_PEOPLE):
        return []
    first, _, last = query.partition(" ")
    whole = Q(first_name__iexact=first, last_name__istartswith=last)
    starts = (
        Q(first_name__istartswith=query)
        | Q(last_name__istartswith=query)
        | Q(username__istartswith=query)
        | Q(email__istartswith=query)
    )
    people = Person.objects.filter(starts | whole if last else starts)
    return [
        SearchHit(
            reverse("reviews:person", args=[other.public_id]),
            text=str(other),
            note="" if other.is_active else "Deactivated",
        )
        for other in people.order_by("first_name", "last_name", "pk")[:MAX_HITS]
    ]


def _list_agents(person: Person, query: str) -> list[SearchHit]:
    agents = select_visible_agents(person).filter(
        Q(slug__istartswith=query) | Q(name__icontains=query)
    )
    return [
        SearchHit(
            reverse("agents:agent", args=[agent.slug]),
            text=agent.name,
            note=f"Owner: {agent.owner}",
        )
        for agent in agents.order_by("name")[:MAX_HITS]
    ]


def _list_runs(person: Person, query: str) -> list[SearchHit]:
    """Runs by the beginning of their name, one index range an agent."""
    agents = list(select_visible_agents(person).values_list("pk", flat=True))
    runs = Thread.objects.filter(agent__in=agents, name__startswith=query)
    visible = visibility.select_visible_proposals(person)
    return [
        SearchHit(
            reverse("agents:thread", args=[run.agent.slug, run.name]),
            text=run.name,
            note=f"Run of {run.agent.name}",
        )
        for run in runs.select_related("agent").order_by("-started_at")[:MAX_HITS]
        if run.agent.owner_id == person.pk
        or visible.filter(agent=run.agent.slug, thread=run.name).exists()
    ]
