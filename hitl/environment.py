"""The deployment's configuration, read from the environment and typed.

A wrong or missing variable stops the process with one line that names the variable and
its rule; nothing is guessed.
"""

from __future__ import annotations

import base64
import binascii
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import SplitResult, urlsplit

import psycopg
from django.core.exceptions import ImproperlyConfigured
from psycopg.conninfo import conninfo_to_dict
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from journal import bearer_tokens
from policies.group_access import GroupAccess, parse_groups

ROOT = Path(__file__).resolve().parent.parent
IS_CHECKOUT = (ROOT / "manage.py").exists()
# The static files of an image, which collects them when it is built.
COLLECTED = ROOT / "collected"
SHORTEST_TEXT_DAYS = 97  # a request waits at most 90
if IS_CHECKOUT:  # elsewhere the client is installed
    sys.path.append(str(ROOT / "client"))
LOOPBACK = "127.0.0.1"
PRIVATE_MARK = "database_password"
SHORTEST_TOKEN = 20
CHAT_SCHEMES = frozenset({"http", "https", "teams+http", "teams+https"})
MOST_WEB_PROCESSES = 24  # of `make up`: as many as its PostgreSQL has connections for


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


def find_state_folder(environ: Mapping[str, str]) -> Path:
    """`STATE`, by default `var` of a copy of the repository, or a folder of the user
    where the product is installed."""
    given = environ.get("STATE", "").strip()
    if given:
        return Path(given)
    if IS_CHECKOUT:
        return ROOT / "var"
    base = environ.get("XDG_DATA_HOME", "")
    data = Path(base) if os.path.isabs(base) else Path.home() / ".local" / "share"
    return data / "counterseal"


def count_cores() -> int:
    """The processor cores that this process may use, at most MOST_WEB_PROCESSES."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:  # macOS
        cores = os.cpu_count() or 1
    return min(cores, MOST_WEB_PROCESSES)


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


class Counterseal(BaseSettings):
    """The configuration of one installation. Frozen.

    Keys come from variables or from files of the same name under `$STATE/keys`.
    `deployment` defaults to `production`, so that a forgotten variable is an error;
    `manage.py` sets `local` for a private installation.
    """

    model_config = SettingsConfigDict(frozen=True, extra="ignore")

    deployment: Literal["local", "production"] = "production"
    base_url: Annotated[str, AfterValidator(_check_base_url)]
    database_url: Annotated[str, AfterValidator(_check_database_url)] = Field(
        repr=False
    )
    redis_url: Annotated[str, AfterValidator(_check_redis_url)] = Field(repr=False)
    state: Path = Field(default_factory=lambda: find_state_folder({}))
    allowed_hosts: Annotated[list[str], NoDecode, BeforeValidator(_parse_names)] = []
    # One person does everything: see policies/solo.py.
    solo: Annotated[bool, AfterValidator(_check_solo)] = False

    secret_key: Annotated[str, Field(min_length=50, repr=False)]
    # Former ones: what they signed stays valid, and nothing new is signed by them.
    secret_key_fallbacks: Annotated[
        list[Annotated[str, Field(min_length=50)]],
        NoDecode,
        BeforeValidator(_parse_names),
    ] = Field(default=[], repr=False)
    data_key: Key = Field(repr=False)  # encrypts blobs and results
    data_keys_retired: Keys = Field(default=[], repr=False)  # they decrypt what is old
    tag_key: Key = Field(repr=False)  # redaction tags: equal values, equal tags
    tag_keys_retired: Keys = Field(default=[], repr=False)  # ids by them still count
    # Ed25519 seeds: the key that signs grants, published next keys, and retired keys.
    grant_key: Key = Field(repr=False)
    grant_keys_next: Keys = Field(default=[], repr=False)
    grant_keys_retired: Keys = Field(default=[], repr=False)
    webhook_secret: Annotated[str, AfterValidator(_check_webhook_secret)] = Field(
        repr=False
    )
    # Of the agent for which a private gate is ready: see agents/ready_agent.py.
    agent_key: Annotated[str, AfterValidator(_check_agent_key)] = Field(
        default="", repr=False
    )
    # Private networks that calls to tools' services may reach, and those that webhooks
    # to agents may reach; the SSRF guard refuses all others.
    webhook_networks: Networks = []
    callback_networks: Networks = []
    # Where web processes listen on their hosts: no webhook may be sent there.
    port: Ports = [8000]
    # How many web processes `make up` starts.
    web_processes: Annotated[int, Field(ge=1, le=MOST_WEB_PROCESSES)] = Field(
        default_factory=count_cores
    )

    # Modules whose functions a policy may name, in addition to the shipped verifiers.
    callables: Annotated[list[str], NoDecode, BeforeValidator(_parse_modules)] = Field(
        default=[], validation_alias="COUNTERSEAL_CALLABLES"
    )

    # What Prometheus sends to read /metrics; without it there is no such page.
    metrics_token: Annotated[str, AfterValidator(_check_metrics_token)] = Field(
        default="", repr=False
    )

    # OpenTelemetry's own variables: with one of them, traces go there over OTLP.
    otel_exporter_otlp_endpoint: str = Field(default="", repr=False)
    otel_exporter_otlp_traces_endpoint: str = Field(default="", repr=False)

    mail_url: Annotated[str, AfterValidator(_check_mail_url)] = Field(
        default="", repr=False
    )
    mail_from: str = "Counterseal <counterseal@localhost>"
    # Slack: the token of a bot, the room of messages for which the policy names none,
    # and the address of Slack's API.
    slack_bot_token: Annotated[str, AfterValidator(_check_slack_token)] = Field(
        default="", repr=False
    )
    slack_channel: str = ""
    slack_api_url: Annotated[str, AfterValidator(_check_base_path)] = (
        "https://slack.com/api"
    )
    # Incoming webhooks of chat programs, by the name that a policy gives them. The
    # addresses are secrets.
    chat_webhooks: NamedAddresses = Field(default={}, repr=False)
    # Where signed notifications go, by the name that a policy gives the address.
    notify_webhooks: NamedAddresses = Field(default={}, repr=False)
    # Text messages by Twilio's Messages API: the account, its token, and the sender: a
    # number or a messaging service (MG...).
    sms_account: str = ""
    sms_token: str = Field(default="", repr=False)
    sms_from: str = ""
    sms_api_url: Annotated[str, AfterValidator(_check_base_path)] = (
        "https://api.twilio.com"
    )
    # Web push: 32 random bytes, from which the installation's key is made, and whom a
    # push service may ask about its messages.
    vapid_key: OptionalKey = Field(default=b"", repr=False)
    vapid_contact: Annotated[str, AfterValidator(_check_contact)] = ""
    # Single sign-on by OpenID Connect: the provider, this installation's client there,
    # and how the sign-in page calls it.
    oidc_issuer: Annotated[str, AfterValidator(_check_issuer)] = ""
    oidc_client_id: Annotated[str, AfterValidator(_check_client)] = Field(
        default="", validate_default=True
    )
    oidc_client_secret: Annotated[str, AfterValidator(_check_client)] = Field(
        default="", validate_default=True, repr=False
    )
    oidc_name: str = ""
    oidc_scopes: Annotated[str, AfterValidator(_check_scopes)] = "openid email profile"
    # The claim that lists a person's groups, and what each group means here.
    oidc_groups_claim: str = "groups"
    oidc_groups: Annotated[
        dict[str, GroupAccess], NoDecode, BeforeValidator(parse_groups)
    ] = {}
    # Whether the provider sends checked addresses only, without saying so.
    oidc_trust_email: bool = False
    log_format: Literal["json", "console"] = "json"
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    # Whether two people confirm each standby that took over, or only one that may have
    # lost something: see journal/failover.py.
    failover: Literal["confirm", "synchronous"] = "confirm"

    # How long a client may take to send a request's headers, and then its body.
    head_timeout: Seconds = 10
    body_timeout: Seconds = 30

    # The time-outs of one attempt, in seconds, from the innermost to the outermost;
    # hitl/checks.py enforces their order.
    http_timeout: Seconds = 10
    soft_time_limit: Seconds = 20
    time_limit: Seconds = 30
    lease_seconds: Seconds = 60
    visibility_timeout: Seconds = 120

    # Without a sweep or an effect for this long, readyz and the pages report it.
    standstill_seconds: Annotated[int, Field(ge=15)] = 40

    # How long the log stays in the database before people may archive it: at least for
    # 183 days, and 0 is for ever.
    log_keep_months: Annotated[int, AfterValidator(_check_log_months)] = 0
    # Retention, in days.
    keep_outbox_days: Annotated[int, Field(ge=4)] = 14  # deliveries are tried for 3
    keep_keys_days: Annotated[int, Field(ge=97)] = 100  # a request waits at most 90
    keep_notices_days: Annotated[int, Field(ge=7)] = 90
    keep_deliveries_days: Annotated[int, Field(ge=7)] = 90
    keep_blobs_days: Annotated[int, Field(ge=0)] = 30  # of finished threads
    keep_results_days: Annotated[int, Field(ge=1)] = 183
    # What people and agents wrote: 0 is for ever.
    keep_files_days: TextDays = 183
    keep_arguments_days: TextDays = 0
    keep_questions_days: TextDays = 0
    keep_notes_days: TextDays = 0
    keep_log_texts_days: TextDays = 0

    agent_rate_per_minute: Annotated[int, Field(gt=0)] = 600
    agent_pending_cap: Annotated[int, Field(gt=0)] = 1000
    # The largest file of evidence.
    evidence_file_mib: Annotated[int, Field(ge=1, le=8)] = 5
    # Questions and returns of people about one request, and questions of its agent.
    dialogue_rounds: Annotated[int, Field(gt=0, le=50)] = 5
    # Wrong passwords and keys from one address, for all accounts together.
    failures_per_minute: Annotated[int, Field(gt=0)] = 20

    @property
    def evidence_file_bytes(self) -> int:
        return self.evidence_file_mib * 1024 * 1024

    @property
    def local(self) -> bool:
        return self.deployment == "local"

    @property
    def oidc_label(self) -> str:
        """How pages call the identity provider; "" where there is none."""
        return self.oidc_name or urlsplit(self.oidc_issuer).hostname or ""

    @property
    def exports_traces(self) -> bool:
        """Whether spans of proposals go to an OpenTelemetry server."""
        return bool(
            self.otel_exporter_otlp_endpoint or self.otel_exporter_otlp_traces_endpoint
        )

    @property
    def hostname(self) -> str:
        return urlsplit(self.base_url).hostname or ""

    @property
    def https(self) -> bool:
        return self.base_url.startswith("https://")

    @property
    def loopback(self) -> bool:
        return is_loopback(self.hostname)

    @property
    def secure_cookies(self) -> bool:
        """Whether browsers keep a `Secure` cookie from this address.

        Chromium and Firefox treat http on localhost and 127.0.0.0/8 as trustworthy and
        accept `Secure`, and so `__Host-`, from there (tests/hitl/test_cookies.py
        verifies it with a real Chromium). From any other http address they would drop
        the cookie, and nobody could sign in.
        """
        return self.https or self.loopback


def is_loopback(hostname: str) -> bool:
    """Whether it is `localhost` or an address of the loopback network."""
    try:
        return ip_address(hostname).is_loopback
    except ValueError:
        return hostname == "localhost" or hostname.endswith(".localhost")


def read_environment(environ: Mapping[str, str] = os.environ) -> Counterseal:
    """Read this process's configuration.

    *Raises* ImproperlyConfigured with one line for each wrong variable.
    """
    keys = find_state_folder(environ) / "keys"
    private = is_private_folder(keys) and environ.get("DEPLOYMENT") != "local"
    usable = keys.is_dir() and not private
    try:
        return Counterseal(_secrets_dir=keys if usable else None)
    except ValidationError as error:
        # Leave out the value and the cause: both may contain a secret.
        lines = describe_errors(error)
        if private and "required in production" in lines:
            lines += (
                f". The keys in {keys} are those of a private gate, which production"
                f" reads once {PRIVATE_MARK} is removed from that folder"
            )
        raise ImproperlyConfigured(lines) from None


@contextmanager
def end_on_wrong_settings() -> Iterator[None]:
    """End a process that another program starts, such as uvicorn or Celery, with the
    lines that a command prints for settings that are missing or wrong."""
    try:
        yield
    except ImproperlyConfigured as error:
        sys.stderr.write(f"counterseal: {error}\n")
        raise SystemExit(1) from None


def is_private_folder(keys: Path) -> bool:
    """Whether `counterseal up` made this folder of keys: it also has the password of
    the database that runs beside it."""
    return (keys / PRIVATE_MARK).exists()


def describe_errors(error: ValidationError) -> str:
    """One line for each variable: its name and the rule it breaks. All that are missing
    are one line, and a wrong DEPLOYMENT is the only one: the others depend on it."""
    faults = error.errors(include_input=False, include_url=False)
    names = [str(fault["loc"][0]).upper() for fault in faults]
    if "DEPLOYMENT" in names:
        return (
            "DEPLOYMENT: must be 'local' or 'production': leave it out for a gate of"
            " this machine alone"
        )
    named = list(zip(names, faults, strict=True))
    missing = [name for name, fault in named if fault["type"] == "missing"]
    lines = [
        f"{name}: {_describe_rule(fault)}"
        for name, fault in named
        if fault["type"] != "missing"
    ]
    if missing:
        lines.append(
            f"{', '.join(missing)}: required in production; see docs/operations.md,"
            " section Settings. A gate of this machine alone needs DEPLOYMENT=local"
        )
    return "\n".join(lines)


def _describe_rule(fault: Any) -> str:
    text = str(fault["msg"])
    return text.removeprefix("Value error, ").replace("Input should be", "must be")
