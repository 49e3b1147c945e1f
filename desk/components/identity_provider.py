"""The identity provider that signs people in, over OpenID Connect: the authorization
code flow with PKCE, a state and a nonce, all by Authlib.

The provider is as its discovery document says, which each process reads once. Its keys
are read again when a token names a new one.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import requests
import structlog
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.django_client import DjangoOAuth2App, OAuth
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from joserfc.errors import JoseError

from journal import clock
from journal.errors import NotPermitted, Unavailable
from reviews.administration.single_sign_on import ProviderAccount

TIMEOUT_S = 10
# Signed with a key of the provider alone: neither unsigned nor by a shared secret.
ALGORITHMS = {
    "EdDSA",
    *(f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512)),
}
SKEW_S = 60  # how far the provider's clock may be behind
LONGEST_SUBJECT, LONGEST_ADDRESS = 255, 254
# What an answer that is wrong in any part ends in.
_WRONG = (AuthlibBaseError, JoseError, RuntimeError, ValueError, TypeError, LookupError)
_FRESH_SINCE = "fresh_since"  # in the session
log = structlog.get_logger(__name__)


class Provider(DjangoOAuth2App):  # type: ignore[misc]
    """Authlib's client, which takes the discovery document of the right issuer only and
    no weak signature."""

    def load_server_metadata(self) -> dict[str, Any]:
        """The discovery document. Raises ValueError for another issuer's."""
        metadata: dict[str, Any] = super().load_server_metadata()
        issuer: str = settings.COUNTERSEAL.oidc_issuer
        if str(metadata.get("issuer")).rstrip("/") != issuer.rstrip("/"):
            metadata.pop("_loaded_at")
            raise ValueError("the discovery document names another issuer")
        offered = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
        # guard: federated-signature
        metadata["id_token_signing_alg_values_supported"] = [
            name for name in offered if name in ALGORITHMS
        ]
        return metadata


class Registry(OAuth):  # type: ignore[misc]
    oauth2_client_cls = Provider


@functools.lru_cache(maxsize=2)
def _load_provider(issuer: str, client: str, secret: str, scopes: str) -> Provider:
    provider: Provider = Registry().register(
        "provider",
        client_id=client,
        client_secret=secret,
        server_metadata_url=f"{issuer.rstrip('/')}/.well-known/openid-configuration",
        client_kwargs={
            "scope": scopes,
            "code_challenge_method": "S256",
            "default_timeout": TIMEOUT_S,
        },
    )
    return provider


def load_provider() -> Provider:
    """The provider of the settings."""
    return _load_provider(*_list_settings())


def _list_settings() -> tuple[str, str, str, str]:
    given = settings.COUNTERSEAL
    return (
        given.oidc_issuer,
        given.oidc_client_id,
        given.oidc_client_secret,
        given.oidc_scopes,
    )


def probe() -> str:
    """What is wrong with the provider, whose discovery document is read anew; "" where
    it answers as it should."""
    try:
        _load_provider.__wrapped__(*_list_settings()).load_server_metadata()
    except requests.RequestException as error:
        return f"does not answer as a provider ({type(error).__name__})"
    except _WRONG as error:
        return f"gives no usable answer ({type(error).__name__})"
    return ""


def redirect_to_provider(request: HttpRequest, *, fresh: bool) -> HttpResponse:
    """Lead the browser to the provider. `fresh` has the person sign in there anew, also
    where they are signed in. Raises Unavailable where the provider does not answer."""
    back = settings.COUNTERSEAL.base_url + reverse("reviews:provider_callback")
    more: dict[str, str] = {"prompt": "login", "max_age": "0"} if fresh else {}
    try:
        answer: HttpResponse = load_provider().authorize_redirect(request, back, **more)
    except (requests.RequestException, *_WRONG) as error:
        raise _build_unavailable(error) from None
    request.session[_FRESH_SINCE] = int(clock.now().timestamp()) if fresh else None
    return answer


def read_answer(request: HttpRequest) -> tuple[ProviderAccount, bool]:
    """The account that the provider's answer names, and whether its person signed in
    there just now. Raises NotPermitted for an answer that is wrong or none of this
    browser's, and Unavailable where the provider does not answer."""
    fresh_since = request.session.pop(_FRESH_SINCE, None)
    provider = load_provider()
    try:
        token = provider.authorize_access_token(request)
        claims = token["userinfo"]  # only of a token that was checked
        claims = _add_user_info(provider, token, claims)
        account = _read_account(claims)
        # guard: federated-fresh
        fresh = fresh_since is not None and (
            int(claims["auth_time"]) >= fresh_since - SKEW_S
        )
    except requests.RequestException as error:
        raise _build_unavailable(error) from None
    except _WRONG as error:
        log.warning("provider_refused", error=type(error).__name__)
        raise NotPermitted(
            f"{settings.COUNTERSEAL.oidc_label} did not sign you in. Try again."
        ) from None
    return account, fresh


def _build_unavailable(error: Exception) -> Unavailable:
    log.warning("provider_unavailable", error=type(error).__name__)
    label = settings.COUNTERSEAL.oidc_label
    return Unavailable(f"{label} gave no usable answer. Try again in a minute.")


def _add_user_info(
    provider: Provider, token: Mapping[str, Any], claims: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The claims with those that the provider gives at its own address only."""
    wanted = {"email", settings.COUNTERSEAL.oidc_groups_claim}
    offers = provider.load_server_metadata().get("userinfo_endpoint")
    if wanted <= claims.keys() or not offers:
        return claims
    more = provider.userinfo(token=token)
    if more["sub"] != claims["sub"]:  # OpenID Connect Core, section 5.3.2
        raise ValueError("the user information is somebody else's")
    return {**more, **claims}


def _read_account(claims: Mapping[str, Any]) -> ProviderAccount:
    trusted = settings.COUNTERSEAL.oidc_trust_email
    # guard: federated-address
    checked = trusted or str(claims.get("email_verified")).lower() == "true"
    email, subject = str(claims.get("email") or ""), str(claims["sub"])
    if not 0 < len(subject) <= LONGEST_SUBJECT or len(email) > LONGEST_ADDRESS:
        raise ValueError("the subject or the address is too long")
    return ProviderAccount(
        issuer=str(claims["iss"]),
        subject=subject,
        email=email if checked else "",
        username=str(claims.get("preferred_username") or ""),
        first_name=str(claims.get("given_name") or ""),
        last_name=str(claims.get("family_name") or ""),
        groups=_read_groups(claims.get(settings.COUNTERSEAL.oidc_groups_claim)),
    )


def _read_groups(value: Any) -> frozenset[str]:
    if isinstance(value, str):
        return frozenset([value])
    return frozenset(map(str, value)) if isinstance(value, list) else frozenset()
