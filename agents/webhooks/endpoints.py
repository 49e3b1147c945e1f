"""Webhook endpoints of agents and the secrets that sign their deliveries. An address is
checked when it is registered and again before every attempt."""

from __future__ import annotations

import base64
import secrets
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from agents import locks
from agents.models import LONGEST_URL, Agent, Callback, Endpoint
from journal import clock, encryption, log
from journal.errors import Invalid, NotFound, at
from policies.models import Person
from reviews.outbound import addresses, own_ports
from reviews.requests import proposals as gate

MOST = 20  # registered endpoints of one agent
MOST_NAMED = 200  # further endpoints of one agent, from callback URLs
SECRET_BYTES = 32
BOTH_SIGN = timedelta(hours=24)


@transaction.atomic(durable=True)
def register(*, agent: Agent, url: str, by: Person) -> tuple[Endpoint, str]:
    """Register an endpoint for all events of the agent's new and waiting proposals.

    Returns it with its secret, which is shown only this once. An endpoint that a
    callback URL created at this address becomes the registered one. Locks: the agent's
    proposals in progress (advisory). Raises Invalid.
    """
    locks.listening(agent)
    check_new(agent, url)
    now = clock.now()
    known = agent.endpoints.filter(url=url).first()
    if known is not None:
        endpoint, secret = _adopt(known)
    else:
        endpoint, secret = _make(agent, url, by_proposal=False, now=now)
    gate.be_heard(agent.slug)
    _tell("endpoint.registered", endpoint, by, now)
    return endpoint, secret


def _adopt(endpoint: Endpoint) -> tuple[Endpoint, str]:
    """Turn an endpoint that a callback URL created into a registered one."""
    secret = _new_secret()
    endpoint.by_proposal, endpoint.secret = False, _sealed(endpoint.pk, secret)
    endpoint.save(update_fields=["by_proposal", "secret"])
    return endpoint, secret


@transaction.atomic(durable=True)
def renew(*, endpoint_id: str, by: Person) -> str:
    """Replace the secret and return the new one, which is shown only this once. The
    former secret also signs for one more day, so that the receiver can change over.
    Raises NotFound, also when another call renewed the secret meanwhile."""
    endpoint, now = _get(endpoint_id), clock.now()
    secret = _new_secret()
    found = Endpoint.objects.filter(pk=endpoint.pk, secret=endpoint.secret)
    if not found.update(
        secret=_sealed(endpoint.pk, secret),
        former=endpoint.secret,
        former_until=now + BOTH_SIGN,
    ):
        raise NotFound
    _tell("endpoint.secret_renewed", endpoint, by, now)
    return secret


@transaction.atomic(durable=True)
def switch_off(*, endpoint_id: str, by: Person) -> None:
    """Stop sending to an endpoint; its deliveries wait. Raises NotFound."""
    endpoint, actor = _get(endpoint_id), log.Actor("person", by.public_id)
    turn_off(endpoint, "person", actor, clock.now())


@transaction.atomic(durable=True)
def switch_on(*, endpoint_id: str, by: Person) -> None:
    """Send to an endpoint again, at once even if it had asked for a rest. Raises
    NotFound."""
    endpoint, now = _get(endpoint_id), clock.now()
    found = Endpoint.objects.filter(pk=endpoint.pk, off_at__isnull=False)
    if found.update(off_at=None, off_why="", rest_until=None):
        _tell("endpoint.switched_on", endpoint, by, now)


def turn_off(endpoint: Endpoint, why: str, actor: log.Actor, now: datetime) -> None:
    """Switch off an endpoint and log it, unless it is off already. `why` is "person" or
    "gone". Caller holds a transaction."""
    found = Endpoint.objects.filter(pk=endpoint.pk, off_at__isnull=True)
    if found.update(off_at=now, off_why=why):
        log.append(
            "endpoint.switched_off",
            actor=actor,
            at=now,
            agent=endpoint.agent.slug,
            data={"endpoint": endpoint.pk, "code": why},
        )


def check_new(agent: Agent, url: str) -> None:
    """Raise Invalid for an address that cannot become an endpoint of this agent: it is
    never called, is registered already, or the agent has too many."""
    check(url, "url")
    if agent.endpoints.filter(url=url, by_proposal=False).exists():
        raise Invalid(errors=[at("url", "this endpoint is registered already")])
    if agent.endpoints.filter(by_proposal=False).count() >= MOST:
        raise Invalid(errors=[at("url", f"an agent has at most {MOST} endpoints")])


def _check_named(agent: Agent) -> None:
    if agent.endpoints.filter(by_proposal=True).count() >= MOST_NAMED:
        said = f"an agent's proposals name at most {MOST_NAMED} places"
        raise Invalid(errors=[at("callback_url", said)])


def check(url: str, path: str) -> addresses.Target:
    """Return the parts of a URL. Raises Invalid, at `path`, for one that Holdpoint
    never calls, such as a private address."""
    try:
        if len(url) > LONGEST_URL:
            raise addresses.NotAllowed(f"at most {LONGEST_URL} characters")
        target = addresses.parse(url)
        own_ports.check(target, networks=settings.HOLDPOINT.callback_networks)
    except addresses.NotAllowed as error:
        raise Invalid(errors=[at(path, str(error))]) from None
    return target


def listens(agent: Agent, callback_url: str = "") -> bool:
    """Whether any endpoint is to receive the events of a proposal in creation.

    Takes the shared lock of `lock_listeners`: a concurrent registration waits for this
    transaction and then sees the proposal. Caller holds a transaction.
    """
    locks.listening(agent, shared=True)
    registered = Endpoint.objects.filter(agent=agent, by_proposal=False)
    return bool(callback_url) or registered.exists()


def call_back(agent: Agent, proposal: str, url: str, now: datetime) -> None:
    """Record the callback URL of one proposal. An endpoint of the same origin signs its
    deliveries, a registered one before one that a callback created; without any, one is
    created. Raises Invalid. Caller holds a transaction."""
    origin = origin_of(check(url, "callback_url"))
    Callback.objects.create(
        proposal=proposal, endpoint=_of_origin(agent, origin, now), url=url
    )


def origin_of(target: addresses.Target) -> str:
    """Return scheme and authority of an address as a URL."""
    return f"{target.scheme}://{target.authority}/"


def _of_origin(agent: Agent, origin: str, now: datetime) -> Endpoint:
    own = list(agent.endpoints.order_by("by_proposal", "created_at"))
    for endpoint in own:
        if origin_of(addresses.parse(endpoint.url)) == origin:
            return endpoint
    _check_named(agent)
    return _make(agent, origin, by_proposal=True, now=now)[0]


def _make(
    agent: Agent, url: str, *, by_proposal: bool, now: datetime
) -> tuple[Endpoint, str]:
    secret = _new_secret()
    endpoint = Endpoint(agent=agent, url=url, by_proposal=by_proposal, created_at=now)
    endpoint.secret = _sealed(endpoint.pk, secret)
    # Of two concurrent first callbacks, the second waits for the first to commit and
    # then finds its row.
    Endpoint.objects.bulk_create([endpoint], ignore_conflicts=True)
    return Endpoint.objects.get(agent=agent, url=url), secret


def secrets_of(endpoint: Endpoint, now: datetime) -> list[str]:
    """List the secrets that sign a delivery at this time, the newest first."""
    kept = [endpoint.secret]
    if endpoint.former is not None and endpoint.former_until is not None:
        kept += [endpoint.former] if endpoint.former_until > now else []
    return [_opened(endpoint.pk, bytes(one)) for one in kept]


def _new_secret() -> str:
    return "whsec_" + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def _sealed(endpoint_id: str, secret: str) -> bytes:
    key = settings.HOLDPOINT.data_key
    return encryption.seal(key, secret.encode(), _place(endpoint_id))


def _opened(endpoint_id: str, sealed: bytes) -> str:
    key = settings.HOLDPOINT.data_key
    return encryption.open(key, sealed, _place(endpoint_id)).decode()


def _place(endpoint_id: str) -> bytes:
    return b"secret of endpoint " + endpoint_id.encode()


def _get(endpoint_id: str) -> Endpoint:
    found = Endpoint.objects.select_related("agent").filter(pk=endpoint_id).first()
    if found is None:
        raise NotFound
    return found


def _tell(kind: str, endpoint: Endpoint, by: Person, now: datetime) -> None:
    """Log a change of an endpoint, never its address: the path may be a secret."""
    log.append(
        kind,
        actor=log.Actor("person", by.public_id),
        at=now,
        agent=endpoint.agent.slug,
        data={"endpoint": endpoint.pk},
    )
