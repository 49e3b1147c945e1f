"""Signed grants: bound to everything their row says, through a change of keys."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from journal import clock, errors, log
from reviews.choices import ExecutionStatus
from reviews.executions import claims, redeem
from reviews.grants import tokens
from reviews.models import Execution, Grant
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose

OLD, NEW, NEWER = (bytes([n]) * 32 for n in (1, 2, 3))


def deployment(gate: Gate, **fields: Any) -> Grant:
    """A grant that its agent may redeem."""
    request = propose(gate.agent, "deploy", **fields).request
    decide(request, gate.sue)
    decide(request, gate.sam)
    return Grant.objects.get(proposal=request.proposal_id)


def keys(settings: Any, signs: bytes, **others: list[bytes]) -> None:
    """Let this installation have other keys from now on."""
    lists = {"grant_keys_next": [], "grant_keys_retired": [], **others}
    update = {"grant_key": signs, **lists}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=update)


def said(token: str) -> dict[str, Any]:
    """The claims of a token, whoever signed it."""
    return dict(jwt.decode(token, options={"verify_signature": False}))


def test_a_token_says_everything_its_row_says(gate: Gate, settings: Any) -> None:
    grant = deployment(gate)
    token = tokens.load_token(grant.pk)
    assert token == tokens.load_token(grant.pk), "the same whenever it is asked for"
    assert jwt.get_unverified_header(token) == {
        "alg": "EdDSA",
        "kid": tokens.build_jwk_set()["keys"][0]["kid"],
        "typ": "counterseal-grant+jwt",
    }
    issued = int(grant.issued_at.timestamp())
    assert said(token) == {
        "iss": settings.COUNTERSEAL.base_url,
        "aud": "tool:deploy",
        "jti": grant.pk,
        "iat": issued,
        "nbf": issued,
        "exp": int(grant.expires_at.timestamp()),
        "proposal": grant.proposal_id,
        "revision": 1,
        "action_hash": grant.revision.action_hash,
        "tool": "deploy",
        "tool_version": grant.revision.known_tool.version,
        "policy_version": gate.policy.number,
        "agent": "riley",
        "thread": "t-1",
        "target": {},
        "idempotency_key": grant.execution.idempotency_key,
        "execution": grant.execution.pk,
    }
    assert tokens.load_grant_by_token(token, agent="riley") == grant


def test_the_target_is_what_the_tools_reader_said(gate: Gate) -> None:
    request = propose(gate.agent, customer="C-9").request
    decide(request, gate.rita)
    grant = Grant.objects.get()
    assert said(tokens.load_token(grant.pk))["target"] == {"customer": "C-9"}
    claim = claims.claim_execution(execution_id=grant.execution.pk, actor=log.SYSTEM)
    assert claim is not None
    assert said(claim.call.grant) == {**said(tokens.load_token(grant.pk)), "fence": 1}


def redeemed(token: str) -> None:
    """The agent takes it, and nothing stands against that."""
    assert redeem.redeem_grant(token=token, agent="riley").fence == 1


OTHERS = {
    "iss": "https://other.example",
    "aud": "tool:pay",
    "jti": "g-other",
    "iat": 1,
    "nbf": 1,
    "exp": 4_000_000_000,
    "proposal": "p-other",
    "revision": 2,
    "action_hash": "sha256:" + "0" * 64,
    "tool": "pay",
    "tool_version": 99,
    "policy_version": 99,
    "agent": "robin",
    "thread": "t-2",
    "target": {"customer": "C-2"},
    "idempotency_key": "cs-other",
    "execution": "x-other",
    "fence": 1,
    "more": True,
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("how", ["another", "missing"])
def test_a_token_of_ours_that_differs_from_its_row_is_refused(
    gate: Gate, name: str, how: str
) -> None:
    """Even one that our own key signed: the row is the authority."""
    grant = deployment(gate)
    known = tokens.build_claims(grant)
    assert {*known, "fence", "more"} == set(OTHERS)
    differing = {**known, name: OTHERS[name]}
    if how == "missing":
        del differing[name]
    if differing == known:
        return
    with pytest.raises(errors.GrantExpired if name == "exp" else errors.NotFound):
        redeem.redeem_grant(token=tokens.sign_claims(differing), agent="riley")
    assert Execution.objects.get().status == ExecutionStatus.QUEUED


def forged(grant: Grant) -> dict[str, str]:
    """Tokens that nobody of ours signed, by how they were made."""
    known = tokens.build_claims(grant)
    token = tokens.load_token(grant.pk)
    head, body, mark = token.split(".")
    typ = {"typ": tokens.GRANT_TYPE}
    kid = {"kid": jwt.get_unverified_header(token)["kid"]}
    public = base64.urlsafe_b64decode(tokens.build_jwk_set()["keys"][0]["x"] + "=")
    other = Ed25519PrivateKey.from_private_bytes(NEWER)

    def encoded(value: dict[str, Any]) -> str:
        raw = json.dumps(value, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")

    none = encoded({"alg": "none", **typ, **kid})
    return {
        "another's key": jwt.encode(known, other, "EdDSA", headers={**typ, **kid}),
        "an unknown key": jwt.encode(known, other, "EdDSA", headers=typ),
        "no signature": f"{head}.{body}.",
        "half of one": f"{head}.{body}.{mark[:43]}",
        "alg none": f"{none}.{body}.",
        "alg none, signed": f"{none}.{body}.{mark}",
        "our public key as a secret": jwt.encode(
            known, public, "HS256", headers={**typ, **kid}
        ),
        "other claims": f"{head}.{encoded({**known, 'agent': 'robin'})}.{mark}",
        "another kind of token": jwt.encode(
            known,
            tokens._build_key(next(tokens.list_key_seeds())).private,
            "EdDSA",
            kid,
        ),
        "dots": "..",
        "no base64": "a.%.c",
        "no object": f"{encoded({})}.{base64.urlsafe_b64encode(b'[]').decode()}.",
        "no ASCII": "ä.ö.ü",
        "nothing of ours": "g-1.AAAA",
        "nothing": "",
    }


def test_what_nobody_of_ours_signed_redeems_nothing(gate: Gate) -> None:
    grant = deployment(gate)
    for how, token in forged(grant).items():
        with pytest.raises(errors.NotFound):
            tokens.load_grant_by_token(token, agent="riley")
        assert Execution.objects.get().attempts == 0, how


def test_a_token_is_accepted_as_its_own_type_only(gate: Gate) -> None:
    grant = deployment(gate)
    token = tokens.sign_claims(tokens.build_claims(grant), typ="other+jwt")
    assert tokens.verify_token(token, typ="other+jwt") == tokens.build_claims(grant)
    for text, typ in (
        (token, tokens.GRANT_TYPE),
        (tokens.load_token(grant.pk), "other+jwt"),
    ):
        with pytest.raises(tokens.ForgedToken):
            tokens.verify_token(text, typ=typ)
    with pytest.raises(errors.NotFound):
        tokens.load_grant_by_token(token, agent="riley")


def test_what_a_claim_gave_out_redeems_nothing(gate: Gate) -> None:
    grant = deployment(gate)
    taken = redeem.redeem_grant(token=tokens.load_token(grant.pk), agent="riley")
    factories.lapsed(taken.execution)
    with pytest.raises(errors.NotFound):
        redeem.redeem_grant(token=taken.call.grant, agent="riley")


def test_a_token_of_a_window_that_was_moved_says_so(gate: Gate) -> None:
    grant = deployment(gate)
    token = tokens.load_token(grant.pk)
    later = grant.expires_at + timedelta(minutes=5)
    worlds.rewrite(Grant, grant.pk, expires_at=later)
    with pytest.raises(errors.GrantExpired, match="new token"):
        redeem.redeem_grant(token=token, agent="riley")
    redeemed(tokens.load_token(grant.pk))


def test_after_its_time_a_token_is_expired(gate: Gate) -> None:
    grant = deployment(gate)
    past = clock.now() - timedelta(seconds=1)
    Grant.objects.filter(pk=grant.pk).update(expires_at=past)
    with pytest.raises(errors.GrantExpired):
        redeem.redeem_grant(token=tokens.load_token(grant.pk), agent="riley")


# A change of keys.
def test_tokens_of_before_a_change_of_keys_are_redeemed_until_their_window_ends(
    gate: Gate, settings: Any
) -> None:
    keys(settings, OLD)
    first, second, third = (deployment(gate, args={"ref": r}) for r in "abc")
    before = [tokens.load_token(grant.pk) for grant in (first, second, third)]
    keys(settings, OLD, grant_keys_next=[NEW])  # published, and signs nothing yet
    assert tokens.load_token(first.pk) == before[0]
    redeemed(before[0])
    keys(settings, NEW, grant_keys_retired=[OLD])
    assert tokens.load_token(second.pk) != before[1]
    redeemed(before[1])
    with pytest.raises(errors.GrantSpent):
        redeem.redeem_grant(token=tokens.load_token(second.pk), agent="riley")
    keys(settings, NEW)  # the old one is forgotten
    with pytest.raises(errors.NotFound):
        redeem.redeem_grant(token=before[2], agent="riley")
    redeemed(tokens.load_token(third.pk))


def test_a_process_that_is_behind_accepts_what_the_next_key_signed(
    gate: Gate, settings: Any
) -> None:
    grant = deployment(gate)
    keys(settings, NEW, grant_keys_retired=[OLD])
    token = tokens.load_token(grant.pk)
    keys(settings, OLD, grant_keys_next=[NEW])
    redeemed(token)


def test_every_key_is_published_once_and_only_its_public_half(settings: Any) -> None:
    keys(settings, NEW, grant_keys_next=[NEW, NEWER], grant_keys_retired=[OLD])
    found = tokens.build_jwk_set()["keys"]
    assert len({key["kid"] for key in found}) == len(found) == 3
    for key in found:
        assert set(key) == {"kty", "crv", "x", "kid", "use", "alg"}
        assert (key["kty"], key["crv"], key["alg"]) == ("OKP", "Ed25519", "EdDSA")


def test_a_keys_name_is_its_thumbprint(settings: Any) -> None:
    """The example of RFC 8037, appendices A.1 and A.3."""
    seed = base64.urlsafe_b64decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=")
    keys(settings, seed)
    (key,) = tokens.build_jwk_set()["keys"]
    assert key["x"] == "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
    assert key["kid"] == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
