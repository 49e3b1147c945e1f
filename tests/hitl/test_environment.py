from __future__ import annotations

import base64
from ipaddress import ip_network
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from hitl import environment

KEY = base64.b64encode(bytes(range(32))).decode()
WHOLE = {
    "DEPLOYMENT": "production",
    "BASE_URL": "https://gate.example.com",
    "DATABASE_URL": "postgresql://u:pw@db/counterseal?sslmode=require",
    "REDIS_URL": "rediss://broker:6380/0",
    "SECRET_KEY": "q8W-zR2k_" * 6,
    "DATA_KEY": KEY,
    "TAG_KEY": KEY,
    "GRANT_KEY": KEY,
    "WEBHOOK_SECRET": f"whsec_{KEY}",
}


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    """Load a whole production environment, changed as asked; None removes."""

    def load(**changes: str | None) -> environment.Counterseal:
        changed = {**WHOLE, "STATE": str(tmp_path), **changes}
        fields = environment.Counterseal.model_fields
        for name in {*fields, "LOG_LEVEL", "COUNTERSEAL_CALLABLES"}:
            monkeypatch.delenv(name.upper(), raising=False)
        present = {name: text for name, text in changed.items() if text is not None}
        for name, text in present.items():
            monkeypatch.setenv(name, text)
        return environment.read_environment(present)

    return load


def test_a_whole_production_environment_loads(load: Any) -> None:
    counterseal = load()
    assert counterseal.https
    assert not counterseal.local
    assert counterseal.data_key == bytes(range(32))
    assert counterseal.webhook_networks == []
    assert counterseal.lease_seconds == 60


def test_keys_that_sign_no_grants_are_lists(load: Any) -> None:
    assert (load().grant_keys_next, load().grant_keys_retired) == ([], [])
    other = base64.b64encode(bytes(32)).decode()
    assert load(GRANT_KEYS_NEXT=other).grant_keys_next == [bytes(32)]
    assert load(GRANT_KEYS_RETIRED=f"{KEY}, {other}").grant_keys_retired == [
        bytes(range(32)),
        bytes(32),
    ]
    with pytest.raises(ImproperlyConfigured, match=r"^GRANT_KEYS_RETIRED: must be 32"):
        load(GRANT_KEYS_RETIRED=f"{KEY},short")


def test_no_function_may_be_called_unless_its_module_is_listed(load: Any) -> None:
    assert load().callables == []
    found = load(COUNTERSEAL_CALLABLES="shop.effects, shop.readers")
    assert found.callables == ["shop.effects", "shop.readers"]
    for text in ("shop.", "*", "shop effects", "a.b:c"):
        with pytest.raises(ImproperlyConfigured, match=r"^COUNTERSEAL_CALLABLES: must"):
            load(COUNTERSEAL_CALLABLES=text)


@pytest.mark.parametrize("name", [name for name in WHOLE if name != "DEPLOYMENT"])
def test_a_missing_variable_is_named(load: Any, name: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"^{name}: required in production"):
        load(**{name: None})


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("DEPLOYMENT", "staging", "must be 'local' or 'production'"),
        ("BASE_URL", "gate.example.com", "must be the public address"),
        ("BASE_URL", "https://example.com/gate", "must end after the host"),
        ("DATABASE_URL", "mysql://u@db/x", "must be postgresql://"),
        ("DATABASE_URL", "postgresql://u:p%w@db/x", "check its % escapes"),
        ("DATABASE_URL", "postgresql://u@db/", "must name the database"),
        ("REDIS_URL", "amqp://broker", "must start with redis://"),
        ("REDIS_URL", "redis://a:6379,b:6379/0", "must be one address"),
        ("REDIS_URL", "redis+sentinel://a:26379/gate/0", "must be one address"),
        ("SECRET_KEY", "short", "at least 50 characters"),
        ("SECRET_KEY_FALLBACKS", "short", "at least 50 characters"),
        ("DATA_KEY", "short", "32 random bytes in base64"),
        ("TAG_KEY", base64.b64encode(b"x" * 16).decode(), "32 random bytes"),
        ("WEBHOOK_SECRET", "secret", "must be whsec_"),
        ("WEBHOOK_SECRET", "whsec_c2hvcnQ=", "at least 24 random bytes"),
        ("WEBHOOK_NETWORKS", "10.0.0.1/8", "has host bits set"),
        ("CALLBACK_NETWORKS", "10.0.0.1/8", "has host bits set"),
        ("PORT", "70000", "less than 65536"),
        ("MAIL_URL", "imap://host", "must be smtp://"),
        ("HTTP_TIMEOUT", "0", "greater than 0"),
        ("AGENT_PENDING_CAP", "many", "valid integer"),
        ("FAILURES_PER_MINUTE", "0", "greater than 0"),
    ],
)
def test_a_wrong_variable_is_named_with_its_rule(
    load: Any, name: str, text: str, rule: str
) -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        load(**{name: text})
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{name}: ")
    assert rule in line


def test_the_refusal_never_shows_the_value(load: Any) -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        load(DATA_KEY="c2VjcmV0", DATABASE_URL="postgresql://u:hunter2%@db/x")
    shown = f"{caught.value} {caught.value.__cause__}"
    assert "c2VjcmV0" not in shown
    assert "hunter2" not in shown


def test_every_wrong_variable_has_a_line(load: Any) -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        load(DATA_KEY="x", REDIS_URL="x")
    names = [line.split(":")[0] for line in str(caught.value).splitlines()]
    assert sorted(names) == ["DATA_KEY", "REDIS_URL"]


def test_keys_come_from_files_and_variables_win(load: Any, tmp_path: Any) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "data_key").write_text(f"{KEY}\n")
    (tmp_path / "keys" / "tag_key").write_text("wrong")
    counterseal = load(DATA_KEY=None)
    assert counterseal.data_key == counterseal.tag_key


def test_printing_the_settings_shows_no_secret(load: Any) -> None:
    shown = repr(load())
    assert KEY not in shown
    assert "pw@db" not in shown
    assert "q8W" not in shown


def test_networks_and_hosts_are_lists_with_commas(load: Any) -> None:
    counterseal = load(
        WEBHOOK_NETWORKS="10.0.0.0/8, fd00::/8",
        CALLBACK_NETWORKS="10.1.0.0/16",
        ALLOWED_HOSTS="a.example, b.example",
        PORT="8000, 8001",
    )
    assert counterseal.callback_networks == [ip_network("10.1.0.0/16")]
    assert counterseal.port == [8000, 8001]
    assert counterseal.webhook_networks == [
        ip_network("10.0.0.0/8"),
        ip_network("fd00::/8"),
    ]
    assert counterseal.allowed_hosts == ["a.example", "b.example"]


@pytest.mark.parametrize(
    ("url", "secure"),
    [
        ("https://gate.example.com", True),
        ("http://127.0.0.1:8000", True),
        ("http://localhost:8000", True),
        ("http://[::1]:8000", True),
        ("http://192.168.1.5:8000", False),
        ("http://gate.example.com", False),
    ],
)
def test_cookies_are_secure_where_browsers_keep_them(
    load: Any, url: str, secure: bool
) -> None:
    assert load(BASE_URL=url).secure_cookies is secure


@pytest.mark.parametrize(
    ("name", "example"),
    [
        ("BASE_URL", "https://gate.example.com"),
        ("DATABASE_URL", "postgresql://user:password@host:5432/name"),
        ("REDIS_URL", "redis://"),
        ("MAIL_URL", "smtps://user:password@host"),
        ("VAPID_CONTACT", "mailto:somebody@example.com"),
        ("CHAT_WEBHOOKS", "name=https://address"),
        ("NOTIFY_WEBHOOKS", "name=https://address"),
        ("COUNTERSEAL_CALLABLES", "shop.effects"),
        ("SLACK_API_URL", "https://api.example.com"),
        ("SMS_API_URL", "https://api.example.com"),
        ("DEPLOYMENT", "production"),
    ],
)
def test_the_example_in_an_error_is_accepted(
    load: Any, name: str, example: str
) -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        load(**{name: "?"})
    assert example in str(caught.value)
    load(**{name: example})


@pytest.mark.parametrize("days", ["1", "96", "36501", "-1"])
def test_a_text_stays_longer_than_a_request_waits(load: Any, days: str) -> None:
    assert load().keep_notes_days == 0
    assert load(KEEP_NOTES_DAYS="97", KEEP_FILES_DAYS="0").keep_notes_days == 97
    with pytest.raises(ImproperlyConfigured, match=r"KEEP_NOTES_DAYS: .*from 97 to"):
        load(KEEP_NOTES_DAYS=days)
