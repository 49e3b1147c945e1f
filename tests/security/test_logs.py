"""What a log line never holds, at any level and in both forms."""

from __future__ import annotations

import io
import json
import logging
import logging.config
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
import redis
import structlog
from celery import Celery
from django.db import OperationalError, connection, transaction
from django.test import Client
from pytest_django import Settings

from agents import keys
from desk.queue import page
from hitl import logs
from reviews.executions import run
from reviews.models import ApprovalRequest, Execution
from reviews.outbound import webhooks
from reviews.people import tokens
from tests.agents.conftest import Caller
from tests.browser.hostile import sampled
from tests.browser.naughty import is_seen, strings
from tests.conftest import Gate
from tests.factories import PASSWORD, decide
from tests.reviews.conftest import service as service
from tests.reviews.service import Service
from tests.security.world import BACKEND

EVIDENCE = "the customer wrote a very telling sentence"
NOTE = "what the reviewer noted beside it"
BLOB = "c2VjcmV0LWJsb2ItYnl0ZXM="
FORGED = "x\n2026-01-01T00:00:00Z [info] approved by nobody\x1b[2K\r\u2028"
# What a terminal or a viewer of logs would obey, or nobody would see.
OBEYED = "\x00\x07\x1b\x85\x9b\u200b\u202e\u2066\u2029\ufeff\U000e0041"


@pytest.fixture(params=["json", "console"])
def lines(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    """Everything that is logged from here on, as an operator would see it."""
    written = io.StringIO()
    config = logs.configure_logging(request.param, "DEBUG")
    structlog.configure(cache_logger_on_first_use=False)
    handler = logging.StreamHandler(written)
    formatter = dict(config["formatters"]["lines"])
    handler.setFormatter(formatter.pop("()")(**formatter))
    loggers = {"": "DEBUG"} | {
        name: given["level"]
        for name, given in config["loggers"].items()
        if "level" in given
    }
    before = {name: logging.getLogger(name).level for name in loggers}
    for name, level in loggers.items():
        logging.getLogger(name).setLevel(level)
    logging.getLogger().addHandler(handler)
    yield written
    logging.getLogger().removeHandler(handler)
    for name, was in before.items():
        logging.getLogger(name).setLevel(was)


def _secrets(settings: Settings) -> list[str]:
    here = settings.COUNTERSEAL
    raw = [here.data_key, here.tag_key, here.grant_key]
    return [
        here.secret_key,
        here.webhook_secret,
        here.database_url,
        *(key.hex() for key in raw),
    ]


def test_a_day_of_work_leaves_no_secret_in_the_log(
    gate: Gate, lines: io.StringIO, settings: Settings, service: Service
) -> None:
    key = keys.issue_key(agent=gate.agent, by=gate.owen)
    token = tokens.create_token(person=gate.rita, name="script")
    caller = Caller(key, iter(range(99)))
    caller.propose(
        rationale=EVIDENCE,
        evidence=[{"kind": "message", "text": EVIDENCE}],
        checkpoint={"summary": EVIDENCE, "state": {"said": EVIDENCE}, "blob": BLOB},
    )
    caller.propose("wire_money", args={"to": EVIDENCE})
    caller.post("/proposals", {"thread": EVIDENCE}, **{"Idempotency-Key": "k"})
    Caller(f"{key}x", iter(range(9))).get("/whoami")
    request = ApprovalRequest.objects.get()
    _people(gate, request, token)
    run.run_execution(Execution.objects.get().pk)
    webhooks.post_signed_json(service.url, {"args": EVIDENCE}, timeout=2)
    found = lines.getvalue()
    assert "request" in found
    for secret in [key, token, PASSWORD, "wrong-secret", NOTE, EVIDENCE, BLOB]:
        assert secret not in found
    for secret in _secrets(settings):
        assert secret not in found


def _people(gate: Gate, request: ApprovalRequest, token: str) -> None:
    client = Client()
    client.post("/sign-in/", {"username": "rita", "password": "wrong-secret"})
    client.post("/sign-in/", {"username": "rita", "password": PASSWORD})
    for path in ("/queue/?q=" + NOTE, f"/requests/{request.pk}/", "/log/"):
        client.get(path)
    body = {
        "verdict": "reject",
        "version": 9,
        "action_hash": request.action_hash,
        "reason": NOTE,
        "password": "wrong-secret",
    }
    client.post(f"/requests/{request.pk}/decide/", body)
    bearer = {"Authorization": f"Bearer {token}"}
    Client().get("/api/v1/requests", headers=bearer)
    Client().get("/api/v1/requests", headers={"Authorization": f"Bearer {token}x"})
    decide(request, gate.rita, reason=NOTE)


def _broken(request: Any) -> None:
    password = PASSWORD
    evidence = EVIDENCE
    raise LookupError(f"nothing of {len(password)} and {len(evidence)}")


def test_an_error_is_logged_without_what_it_worked_on(
    gate: Gate, lines: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "build_queue_page", lambda *_, **__: _broken(None))
    client = Client(raise_request_exception=False)
    client.force_login(gate.rita, BACKEND)
    assert client.get("/queue/", {"q": NOTE}).status_code == 500
    found = lines.getvalue()
    assert "nothing of" in found
    assert "_broken" in found
    assert PASSWORD not in found.replace("PASSWORD", "")
    assert EVIDENCE not in found
    assert NOTE not in found


def test_nobody_forges_a_line(gate: Gate, lines: io.StringIO) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(gate.rita, BACKEND)
    client.get(f"/agents/{quote(FORGED)}/")
    client.get("/queue/", headers={"User-Agent": FORGED, "Origin": "https://a"})
    client.post("/sign-in/", {"username": FORGED, "password": "x"})
    structlog.get_logger("tests").info("said", by=FORGED)
    assert "approved by nobody" in lines.getvalue()
    for line in lines.getvalue().split("\n"):
        assert not line.startswith("2026-01-01")
        assert "\x1b" not in line
        assert "\r" not in line


def test_nothing_that_others_chose_is_obeyed(
    gate: Gate, lines: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = structlog.get_logger("tests")
    bad = f"a{OBEYED}\n2026-01-01 approved by nobody"
    log.info(bad, tool=bad, deep={"x": [bad, (bad,)], bad: bad}, other=Path(bad))
    logging.getLogger("other").warning("of %s", bad)
    try:
        raise LookupError(bad)
    except LookupError:
        log.exception("failed", tool=bad)
        logging.getLogger("other").exception("of %s", bad)
    monkeypatch.setattr(page, "build_queue_page", lambda *_, **__: _raised(bad))
    client = Client(raise_request_exception=False)
    client.force_login(gate.rita, BACKEND)
    assert client.get("/queue/").status_code == 500
    found = lines.getvalue()
    assert found.count("approved by nobody") > 9
    assert "u202e" in found
    for line in found.split("\n"):
        assert line.isprintable()
        assert not line.startswith("2026-01-01")


def _raised(words: str) -> None:
    raise LookupError(words)


def test_no_value_makes_a_line_endless(lines: io.StringIO) -> None:
    log = structlog.get_logger("tests")
    log.info("said", by="x" * 100_000, deep=[["y" * 100_000]])
    try:
        raise LookupError("z" * 100_000)
    except LookupError:
        log.exception("failed")
    assert len(lines.getvalue()) < 40_000
    assert "100000 characters" in lines.getvalue()


def test_a_traceback_can_still_be_read(lines: io.StringIO) -> None:
    try:
        _raised("the reason")
    except LookupError:
        structlog.get_logger("tests").exception("failed")
    found = lines.getvalue()
    assert "LookupError: the reason" in found
    assert "in _raised" in found


def test_a_server_that_is_away_is_one_line(lines: io.StringIO) -> None:
    nowhere: list[Callable[[], object]] = [
        lambda: psycopg.connect("host=127.0.0.1 port=1 user=nobody"),
        lambda: redis.Redis(port=1).ping(),
        lambda: (
            Celery(broker="redis://:@127.0.0.1:1", set_as_current=False)
            .connection_for_write()
            .ensure_connection(max_retries=1, timeout=1)
        ),
    ]
    for ask in nowhere:
        try:
            ask()
        except Exception:
            structlog.get_logger("tests").exception("failed")
            logging.getLogger("other").exception("failed too")
    found = lines.getvalue()
    assert found.count("refused") >= 2 * len(nowhere)
    assert "Traceback" not in found


def test_what_a_server_that_is_there_refuses_keeps_its_traceback(
    gate: Gate, lines: io.StringIO
) -> None:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = 20")
            cursor.execute("SELECT pg_sleep(9)")
    except OperationalError:
        structlog.get_logger("tests").exception("failed")
    assert "QueryCanceled" in lines.getvalue()
    assert "Traceback" in lines.getvalue()


def test_a_line_of_json_is_one_object(gate: Gate, lines: io.StringIO) -> None:
    Client().get("/sign-in/")
    for line in lines.getvalue().splitlines():
        if line.startswith("{"):
            assert "event" in json.loads(line)


@pytest.mark.proof
def test_naughty_strings_in_lines_are_seen_and_never_obeyed(
    gate: Gate,
    lines: io.StringIO,
    request: pytest.FixtureRequest,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    """T14: as a value, as a name, deep inside, in an error, and in an address."""
    every = strings()
    chosen = sampled(every, proof_n(small=60, full=len(every)))
    client = Client(raise_request_exception=False)
    client.force_login(gate.rita, BACKEND)
    for text in chosen:
        _say(text)
        client.get(f"/agents/{quote(text[:200], safe='')}/", {"q": text})
    found, form = lines.getvalue().split("\n"), request.node.callspec.params["lines"]
    for line in found:
        assert is_seen(line), line
        assert line.isprintable()
    record_proof(
        "T14",
        f"{len(chosen)} strings in {len(found):,} {form} lines of the process: none "
        f"ends a line, is obeyed or is unseen (0 of {len(chosen)}: at most "
        f"{3 / len(chosen):.2%})",
    )


def _say(text: str) -> None:
    log = structlog.get_logger("tests")
    log.info(text[:500], tool=text, deep={text[:60]: [text]})
    try:
        raise LookupError(text)
    except LookupError:
        log.exception("failed", tool=text)
