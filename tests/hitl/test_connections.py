"""The addresses of the environment as Django and Celery want them."""

from __future__ import annotations

import pytest

from hitl import connections


def test_a_database_url_is_taken_apart() -> None:
    url = "postgresql://u:p%40w@db:6432/counterseal?sslmode=require"
    found = connections.build_database_config(url, application_name="web")
    named = {key: found[key] for key in ("NAME", "USER", "PASSWORD", "HOST", "PORT")}
    assert named == {
        "NAME": "counterseal",
        "USER": "u",
        "PASSWORD": "p@w",
        "HOST": "db",
        "PORT": "6432",
    }
    assert found["OPTIONS"]["sslmode"] == "require"
    assert found["OPTIONS"]["session_settings"]["lock_timeout"] == "5000"
    assert "options" not in found["OPTIONS"]
    assert found["ATOMIC_REQUESTS"] is False


def test_options_of_the_url_come_first() -> None:
    url = "postgresql:///x?options=-c%20lock_timeout%3D9s"
    options = connections.build_database_config(url, application_name="web")["OPTIONS"]
    assert options["options"] == "-c lock_timeout=9s"
    assert "lock_timeout" not in options["session_settings"]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("redis://:pw@host:6379/2", "redis://:pw@host:6379/2"),
        ("unix:///run/v.sock", "redis+socket:///run/v.sock?virtual_host=0"),
        ("unix:///run/v.sock?db=3", "redis+socket:///run/v.sock?virtual_host=3"),
        ("unix://:pw@/run/v.sock", "redis+socket://:pw@/run/v.sock?virtual_host=0"),
    ],
)
def test_a_redis_url_in_kombus_spelling(given: str, wanted: str) -> None:
    assert connections.build_broker_url(given) == wanted


def test_without_a_mail_url_mail_goes_to_files() -> None:
    assert connections.build_mail_config("").backend.endswith("filebased.EmailBackend")


def test_a_mail_url_is_taken_apart() -> None:
    found = connections.build_mail_config("smtp+tls://gate%40x:p%2Fw@mail.example.com")
    assert (found.host, found.port) == ("mail.example.com", 587)
    assert (found.user, found.password) == ("gate@x", "p/w")
    assert found.starttls
    assert not found.tls
