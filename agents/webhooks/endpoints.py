"""Webhook endpoints of agents and the secrets that sign their deliveries. An address is
checked when it is registered and again before every attempt."""

from __future__ import annotations

import base64
import secrets
from datetime import datetime, timedelta

from django.conf import settings

from agents import locks
from agents.models import MAX_URL_LENGTH, Agent, Callback, Endpoint
from journal import clock, encryption, log
from journal.errors import InvalidInput, NotFound, build_field_error
from journal.operations import operation
from journal.prepared_queries import Parameter, PreparedQuery
from policies import people
from policies.models import Person
from policies.people import build_actor
from reviews.outbound import addresses, own_ports
from reviews.requests import proposals

MAX_REGISTERED = 20  # registered endpoints of one agent
MAX_NAMED = 200  # further endpoints of one agent, from callback URLs
SECRET_BYTES = 32
SECRET_OVERLAP = timedelta(hours=24)


@operation(
    locks="the agent's listeners (advisory)",
    writes="Endpoint, Proposal",
    logs="endpoint.registered",
)
def register_endpoint(*, agent: Agent, url: str, by: Person) -> tuple[Endpoint, str]:
    """Register an endpoint for all events of the agent's new and waiting proposals.
    Returns it with its secret, which is shown only this once. An endpoint that a
    callback URL created at this address becomes the registered one. Raises NotPermitted
    for anyone but an administrator or the agent's owner, and InvalidInput."""
    people.check_owner_or_administrator(agent.owner, by)
    locks.lock_listeners(agent)
    check_new_url(agent, url)
    now = clock.now()
    known = agent.endpoints.filter(url=url).first()
    if known is None:
        endpoint, secret = _create_endpoint(agent, url, by_proposal=False, now=now)
    else:
        endpoint, secret = known, _create_secret()
        endpoint.by_proposal = False
        endpoint.secret = _seal_secret(endpoint.pk, secret)
        endpoint.save(update_fields=["by_proposal", "secret"])
    proposals.mark_has_listener(agent.slug)
    _log_endpoint_change("endpoint.registered", endpoint, by, now)
    return endpoint, secret


@operation(writes="Endpoint", logs="endpoint.secret_renewed")
def renew_secret(*, endpoint_id: str, by: Person) -> str:
    """Replace the secret and return the new one, which is shown only this once. The
    former secret also signs for one more day, so that the receiver can change over.
    Raises NotFound, also when another call renewed the secret meanwhile."""
    endpoint, now = _load_endpoint(endpoint_id), clock.now()
    secret = _create_secret()
    unchanged = Endpoint.objects.filter(pk=endpoint.pk, secret=endpoint.secret)
    if not unchanged.update(
        secret=_seal_secret(endpoint.pk, secret),
        former=endpoint.secret,
        former_until=now + SECRET_OVERLAP,
    ):
        raise NotFound
    _log_endpoint_change("endpoint.secret_renewed", endpoint, by, now)
    return secret


@operation(writes="Endpoint", logs="endpoint.switched_off")
def switch_off(*, endpoint_id: str, by: Person) -> None:
    """Stop sending to an endpoint; its deliveries wait. Raises NotFound."""
    endpoint, actor = _load_endpoint(endpoint_id), build_actor(by)
    mark_switched_off(endpoint, "person", actor, clock.now())


@operation(writes="Endpoint", logs="endpoint.switched_on")
def switch_on(*, endpoint_id: str, by: Person) -> None:
    """Send to an endpoint again, at once even if it had asked for a rest. Raises
    NotFound."""
    endpoint, now = _load_endpoint(endpoint_id), clock.now()
    disabled = Endpoint.objects.filter(pk=endpoint.pk, off_at__isnull=False)
    if disabled.update(off_at=None, off_why="", rest_until=None):
        _log_endpoint_change("endpoint.switched_on", endpoint, by, now)


def mark_switched_off(
    endpoint: Endpoint, why: str, actor: log.Actor, now: datetime
) -> None:
    """Switch off an endpoint and log it, unless it is off already. `why` is "person" or
    "gone". Caller holds a transaction."""
    enabled = Endpoint.objects.filter(pk=endpoint.pk, off_at__isnull=True)
    if enabled.update(off_at=now, off_why=why):
        log.append(
            "endpoint.switched_off",
            actor=actor,
            at=now,
            agent=endpoint.agent.slug,
            data={"endpoint": endpoint.pk, "code": why},
        )


def check_new_url(agent: Agent, url: str) -> None:
    """Raise InvalidInput for an address that cannot become an endpoint of this agent:
    it is never called, is registered already, or the agent has too many."""
    check_url(url, "url")
    if agent.endpoints.filter(url=url, by_proposal=False).exists():
        rule = "this endpoint is already registered"
        raise InvalidInput(errors=[build_field_error("url", rule)])
    if agent.endpoints.filter(by_proposal=False).count() >= MAX_REGISTERED:
        rule = f"an agent may have at most {MAX_REGISTERED} endpoints"
        raise InvalidInput(errors=[build_field_error("url", rule)])


def check_url(url: str, path: str) -> addresses.Target:
    """Return the parts of a URL. Raises InvalidInput, at `path`, for one that
    Counterseal never calls, such as a private address."""
    try:
        if len(url) > MAX_URL_LENGTH:
            raise addresses.NotAllowed(f"at most {MAX_URL_LENGTH} characters")
        target = addresses.parse_url(url)
        own_ports.check_target(target, networks=settings.COUNTERSEAL.callback_networks)
    except addresses.NotAllowed as error:
        raise InvalidInput(errors=[build_field_error(path, str(error))]) from None
    return target


_REGISTERED = PreparedQuery(
    lambda: Endpoint.objects.filter(
        agent_id=Parameter("agent"), by_proposal=False
    ).values_list("pk")[:1]
)


def has_listener(agent: Agent) -> bool:
    """Whether any endpoint is to receive the events of a proposal in creation. Takes
    the shared lock of `lock_listeners`: a concurrent registration waits for this
    transaction and then sees the proposal. Caller holds a transaction."""
    locks.lock_listeners(agent, shared=True)
    return bool(_REGISTERED.fetch_all(agent=agent.pk))


def record_callback(agent: Agent, proposal: str, url: str, now: datetime) -> None:
    """Record the callback URL of one proposal. An endpoint of the same origin signs its
    deliveries, a registered one before one that a callback created; without any, one is
    created. Raises InvalidInput. Caller holds a transaction."""
    origin = format_origin(check_url(url, "callback_url"))
    Callback.objects.create(
        proposal=proposal,
        endpoint=_find_or_create_by_origin(agent, origin, now),
        url=url,
    )


def format_origin(target: addresses.Target) -> str:
    """Return scheme and authority of an address as a URL."""
    return f"{target.scheme}://{target.authority}/"


def _find_or_create_by_origin(agent: Agent, origin: str, now: datetime) -> Endpoint:
    for endpoint in agent.endpoints.order_by("by_proposal", "created_at"):
        if format_origin(addresses.parse_url(endpoint.url)) == origin:
            return endpoint
    if agent.endpoints.filter(by_proposal=True).count() >= MAX_NAMED:
        rule = f"an agent's proposals may name at most {MAX_NAMED} URLs"
        raise InvalidInput(errors=[build_field_error("callback_url", rule)])
    return _create_endpoint(agent, origin, by_proposal=True, now=now)[0]


def _create_endpoint(
    agent: Agent, url: str, *, by_proposal: bool, now: datetime
) -> tuple[Endpoint, str]:
    secret = _create_secret()
    endpoint = Endpoint(agent=agent, url=url, by_proposal=by_proposal, created_at=now)
    endpoint.secret = _seal_secret(endpoint.pk, secret)
    # Of two concurrent first callbacks, the second waits for the first to commit and
    # then finds its row.
    Endpoint.objects.bulk_create([endpoint], ignore_conflicts=True)
    return Endpoint.objects.get(agent=agent, url=url), secret


def list_secrets(endpoint: Endpoint, now: datetime) -> list[str]:
    """List the secrets that sign a delivery at this time, the newest first."""
    sealed_secrets = [endpoint.secret]
    if endpoint.former is not None and endpoint.former_until is not None:
        sealed_secrets += [endpoint.former] if endpoint.former_until > now else []
    context = format_seal_context(endpoint.pk)
    return [
        encryption.decrypt_stored(sealed, context).decode() for sealed in sealed_secrets
    ]


def _create_secret() -> str:
    return "whsec_" + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def _seal_secret(endpoint_id: str, secret: str) -> bytes:
    context = format_seal_context(endpoint_id)
    return encryption.encrypt_stored(secret.encode(), context)


def format_seal_context(endpoint_id: str) -> bytes:
    """What binds a secret to its endpoint's row."""
    return b"secret of endpoint " + endpoint_id.encode()


def _load_endpoint(endpoint_id: str) -> Endpoint:
    endpoint = Endpoint.objects.select_related("agent").filter(pk=endpoint_id).first()
    if endpoint is None:
        raise NotFound
    return endpoint


def _log_endpoint_change(
    kind: str, endpoint: Endpoint, by: Person, now: datetime
) -> None:
    """Log a change of an endpoint, never its address: the path may be a secret."""
    log.append(
        kind,
        actor=build_actor(by),
        at=now,
        agent=endpoint.agent.slug,
        data={"endpoint": endpoint.pk},
    )
