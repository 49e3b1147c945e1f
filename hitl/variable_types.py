"""The types of the environment's variables: how the text of one becomes its value, and
the rule that it must keep."""

from __future__ import annotations

import base64
import binascii
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Annotated, Any
from urllib.parse import SplitResult, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict
from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo
from pydantic_settings import NoDecode

from journal import bearer_tokens
from policies.group_access import GroupAccess, parse_groups

SHORTEST_TEXT_DAYS = 97  # a request waits at most 90
SHORTEST_TOKEN = 20
CHAT_SCHEMES = frozenset({"http", "https", "teams+http", "teams+https"})


def is_loopback(hostname: str) -> bool:
    """Whether it is `localhost` or an address of the loopback network."""
    try:
        return ip_address(hostname).is_loopback
    except ValueError:
        return hostname == "localhost" or hostname.endswith(".localhost")


def _parse_key(text: Any) -> bytes:
    try:
        key = base64.b64decode(str(text).strip(), validate=True)
    except binascii.Error:
        key = b""
    if len(key) != 32:
        raise ValueError("must be 32 random bytes in base64: openssl rand -base64 32")
    return key


def _parse_optional_key(text: Any) -> bytes:
    return _parse_key(text) if str(text).strip() and text != b"" else b""


def _check_issuer(text: str) -> str:
    parts = urlsplit(text)
    secure = parts.scheme == "https" or is_loopback(parts.hostname or "")
    if text and not (secure and parts.hostname and not parts.query):
        raise ValueError("must be the provider's https address, as its tokens name it")
    return text


def _check_client(value: str, info: ValidationInfo) -> str:
    if info.data.get("oidc_issuer") and not value:
        raise ValueError("must be set beside OIDC_ISSUER: the provider gives it out")
    return value


def _check_scopes(text: str) -> str:
    if "openid" not in text.split():
        raise ValueError("must contain openid, like openid email profile groups")
    return text


def _check_contact(text: str) -> str:
    if text and not text.startswith(("mailto:", "https://")):
        raise ValueError("must be mailto:somebody@example.com or an https address")
    return text


def _check_port(parts: SplitResult) -> None:
    try:
        wrong = parts.port == 0
    except ValueError:
        wrong = True
    if wrong:
        raise ValueError("must have a port from 1 to 65535, or none")


def _check_base_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must be the public address, like https://gate.example.com")
    _check_port(parts)
    if parts.path.strip("/") or parts.query or parts.fragment or parts.username:
        raise ValueError(
            "must end after the host and port: Counterseal serves the root path"
        )
    return text.rstrip("/")


def _check_solo(solo: bool, info: ValidationInfo) -> bool:
    if not solo or {"deployment", "base_url"} - info.data.keys():
        return solo
    if info.data["deployment"] != "local":
        raise ValueError(
            "is for one person on their own machine (counterseal up --solo): leave it"
            " out, or set DEPLOYMENT=local"
        )
    if not is_loopback(urlsplit(info.data["base_url"]).hostname or ""):
        raise ValueError(
            "is for one person on their own machine: leave it out, or set BASE_URL to"
            " a loopback address, like http://127.0.0.1:8000"
        )
    return solo


def _check_database_url(text: str) -> str:
    if not text.startswith(("postgresql://", "postgres://")):
        raise ValueError("must be postgresql://user:password@host:5432/name")
    try:
        parts = conninfo_to_dict(text)
    except psycopg.Error as error:
        # Leave out the parser's message: it may quote the password.
        raise ValueError("is not a PostgreSQL address: check its % escapes") from error
    if not parts.get("dbname"):
        raise ValueError("must name the database after the last slash")
    ports = str(parts.get("port") or "").split(",")
    if not all(
        port.isdigit() and 0 < int(port) < 65536 for port in filter(None, ports)
    ):
        raise ValueError("must have ports from 1 to 65535, or none")
    return text


def _check_redis_url(text: str) -> str:
    if "sentinel" in text.partition(":")[0] or "," in urlsplit(text).netloc:
        raise ValueError(
            "must be one address: put a virtual address or a proxy before several"
            " brokers. Nothing is lost while the broker is away"
        )
    if not text.startswith(("redis://", "rediss://", "unix:///")):
        raise ValueError("must start with redis://, rediss:// or unix:///")
    _check_port(urlsplit(text))
    return text


def _check_metrics_token(token: str) -> str:
    if token and len(token) < SHORTEST_TOKEN:
        raise ValueError(f"must have at least {SHORTEST_TOKEN} characters")
    return token


def _check_mail_url(text: str) -> str:
    if text and urlsplit(text).scheme not in {"smtp", "smtps", "smtp+tls"}:
        raise ValueError("must be smtp://, smtp+tls:// or smtps://user:password@host")
    return text


def _check_slack_token(text: str) -> str:
    if text and not text.startswith("xoxb-"):
        raise ValueError("must be the token of a bot, which begins with xoxb-")
    return text


def _check_base_path(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query:
        raise ValueError("must be an address, like https://api.example.com")
    return text.rstrip("/")


def _check_agent_key(text: str) -> str:
    if text:
        bearer_tokens.read_token("cs", text)
    return text


def _parse_networks(text: Any) -> list[IPv4Network | IPv6Network]:
    if not isinstance(text, str):
        return list(text)
    return [ip_network(part.strip()) for part in text.split(",") if part.strip()]


def _parse_names(text: Any) -> list[str]:
    if not isinstance(text, str):
        return list(text)
    return [part.strip() for part in text.split(",") if part.strip()]


def _parse_named_addresses(text: Any) -> dict[str, str]:
    if not isinstance(text, str):
        return dict(text)
    addresses = {}
    for part in _parse_names(text):
        name, _, url = part.partition("=")
        if not name or urlsplit(url).scheme not in CHAT_SCHEMES:
            raise ValueError(
                "must be name=https://address or name=teams+https://address, "
                "separated by commas"
            )
        addresses[name] = url
    return addresses


def _parse_modules(text: Any) -> list[str]:
    names = _parse_names(text)
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise ValueError("must be modules like shop.effects, separated by commas")
    return names


def _check_log_months(months: int) -> int:
    if months != 0 and not 7 <= months <= 1200:
        raise ValueError("must be 0, for ever, or from 7 to 1200 months")
    return months


def _check_text_days(days: int) -> int:
    if days != 0 and not SHORTEST_TEXT_DAYS <= days <= 36500:
        raise ValueError(
            f"must be 0, for ever, or from {SHORTEST_TEXT_DAYS} to 36500 days"
        )
    return days


def _check_webhook_secret(text: str) -> str:
    if not text.startswith("whsec_"):
        raise ValueError("must be whsec_ and at least 24 random bytes in base64")
    try:
        secret = base64.b64decode(text.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        secret = b""
    if len(secret) < 24:
        raise ValueError("must be whsec_ and at least 24 random bytes in base64")
    return text


def _parse_keys(text: Any) -> list[bytes]:
    return [_parse_key(part) for part in _parse_names(text)]


Key = Annotated[bytes, BeforeValidator(_parse_key)]
OptionalKey = Annotated[bytes, BeforeValidator(_parse_optional_key)]
Keys = Annotated[list[bytes], NoDecode, BeforeValidator(_parse_keys)]
Networks = Annotated[
    list[IPv4Network | IPv6Network], NoDecode, BeforeValidator(_parse_networks)
]
NamedAddresses = Annotated[
    dict[str, str], NoDecode, BeforeValidator(_parse_named_addresses)
]
Ports = Annotated[
    list[Annotated[int, Field(gt=0, lt=65536)]], NoDecode, BeforeValidator(_parse_names)
]
Seconds = Annotated[int, Field(gt=0)]
TextDays = Annotated[int, AfterValidator(_check_text_days)]
BaseUrl = Annotated[str, AfterValidator(_check_base_url)]
DatabaseUrl = Annotated[str, AfterValidator(_check_database_url)]
RedisUrl = Annotated[str, AfterValidator(_check_redis_url)]
Solo = Annotated[bool, AfterValidator(_check_solo)]
WebhookSecret = Annotated[str, AfterValidator(_check_webhook_secret)]
AgentKeyText = Annotated[str, AfterValidator(_check_agent_key)]
MetricsToken = Annotated[str, AfterValidator(_check_metrics_token)]
MailUrl = Annotated[str, AfterValidator(_check_mail_url)]
SlackToken = Annotated[str, AfterValidator(_check_slack_token)]
ServiceUrl = Annotated[str, AfterValidator(_check_base_path)]
Contact = Annotated[str, AfterValidator(_check_contact)]
Issuer = Annotated[str, AfterValidator(_check_issuer)]
ClientValue = Annotated[str, AfterValidator(_check_client)]
Scopes = Annotated[str, AfterValidator(_check_scopes)]
LogMonths = Annotated[int, AfterValidator(_check_log_months)]
Names = Annotated[list[str], NoDecode, BeforeValidator(_parse_names)]
Modules = Annotated[list[str], NoDecode, BeforeValidator(_parse_modules)]
SecretKeys = Annotated[
    list[Annotated[str, Field(min_length=50)]],
    NoDecode,
    BeforeValidator(_parse_names),
]
Groups = Annotated[dict[str, GroupAccess], NoDecode, BeforeValidator(parse_groups)]
