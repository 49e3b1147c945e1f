"""The deployment's configuration, read from the environment and typed.

A wrong or missing variable stops the process with one line that names the variable and
its rule; nothing is guessed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from .variable_types import (
    AgentKeyText,
    BaseUrl,
    ClientValue,
    Contact,
    DatabaseUrl,
    Groups,
    Issuer,
    Key,
    Keys,
    LogMonths,
    MailUrl,
    MetricsToken,
    Modules,
    NamedAddresses,
    Names,
    Networks,
    OptionalKey,
    Ports,
    RedisUrl,
    Scopes,
    Seconds,
    SecretKeys,
    ServiceUrl,
    SlackToken,
    Solo,
    TextDays,
    WebhookSecret,
    is_loopback,
)

ROOT = Path(__file__).resolve().parent.parent
IS_CHECKOUT = (ROOT / "manage.py").exists()
# The static files of an image, which collects them when it is built.
COLLECTED = ROOT / "collected"
if IS_CHECKOUT:  # elsewhere the client is installed
    sys.path.append(str(ROOT / "client"))
LOOPBACK = "127.0.0.1"
PRIVATE_MARK = "database_password"
MOST_WEB_PROCESSES = 24  # of `make up`: as many as its PostgreSQL has connections for


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


class Counterseal(BaseSettings):
    """The configuration of one installation. Frozen.

    Keys come from variables or from files of the same name under `$STATE/keys`.
    `deployment` defaults to `production`, so that a forgotten variable is an error;
    `manage.py` sets `local` for a private installation.
    """

    model_config = SettingsConfigDict(frozen=True, extra="ignore")

    deployment: Literal["local", "production"] = "production"
    base_url: BaseUrl
    database_url: DatabaseUrl = Field(repr=False)
    redis_url: RedisUrl = Field(repr=False)
    state: Path = Field(default_factory=lambda: find_state_folder({}))
    allowed_hosts: Names = []
    # One person does everything: see policies/solo.py.
    solo: Solo = False

    secret_key: Annotated[str, Field(min_length=50, repr=False)]
    # Former ones: what they signed stays valid, and nothing new is signed by them.
    secret_key_fallbacks: SecretKeys = Field(default=[], repr=False)
    data_key: Key = Field(repr=False)  # encrypts blobs and results
    data_keys_retired: Keys = Field(default=[], repr=False)  # they decrypt what is old
    tag_key: Key = Field(repr=False)  # redaction tags: equal values, equal tags
    tag_keys_retired: Keys = Field(default=[], repr=False)  # ids by them still count
    # Ed25519 seeds: the key that signs grants, published next keys, and retired keys.
    grant_key: Key = Field(repr=False)
    grant_keys_next: Keys = Field(default=[], repr=False)
    grant_keys_retired: Keys = Field(default=[], repr=False)
    webhook_secret: WebhookSecret = Field(repr=False)
    # Of the agent for which a private gate is ready: see agents/ready_agent.py.
    agent_key: AgentKeyText = Field(default="", repr=False)
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
    callables: Modules = Field(default=[], validation_alias="COUNTERSEAL_CALLABLES")

    # What Prometheus sends to read /metrics; without it there is no such page.
    metrics_token: MetricsToken = Field(default="", repr=False)

    # OpenTelemetry's own variables: with one of them, traces go there over OTLP.
    otel_exporter_otlp_endpoint: str = Field(default="", repr=False)
    otel_exporter_otlp_traces_endpoint: str = Field(default="", repr=False)

    mail_url: MailUrl = Field(default="", repr=False)
    mail_from: str = "Counterseal <counterseal@localhost>"
    # Slack: the token of a bot, the room of messages for which the policy names none,
    # and the address of Slack's API.
    slack_bot_token: SlackToken = Field(default="", repr=False)
    slack_channel: str = ""
    slack_api_url: ServiceUrl = "https://slack.com/api"
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
    sms_api_url: ServiceUrl = "https://api.twilio.com"
    # Web push: 32 random bytes, from which the installation's key is made, and whom a
    # push service may ask about its messages.
    vapid_key: OptionalKey = Field(default=b"", repr=False)
    vapid_contact: Contact = ""
    # Single sign-on by OpenID Connect: the provider, this installation's client there,
    # and how the sign-in page calls it.
    oidc_issuer: Issuer = ""
    oidc_client_id: ClientValue = Field(default="", validate_default=True)
    oidc_client_secret: ClientValue = Field(
        default="", validate_default=True, repr=False
    )
    oidc_name: str = ""
    oidc_scopes: Scopes = "openid email profile"
    # The claim that lists a person's groups, and what each group means here.
    oidc_groups_claim: str = "groups"
    oidc_groups: Groups = {}
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
    log_keep_months: LogMonths = 0
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
