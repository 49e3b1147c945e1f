"""When certificates end: of an address that answers over TLS, and of files."""

from __future__ import annotations

import socket
import ssl
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from threading import Thread

import pytest
from pytest_django import Settings

from hitl.doctor import Finding
from hitl.health import certificates


@pytest.fixture
def pem(tmp_path: Path) -> Path:
    """A certificate of 127.0.0.1 for thirty days, with its key in the same file."""
    file = tmp_path / "own.pem"
    subject = ("-subj", "/CN=gate", "-addext", "subjectAltName=IP:127.0.0.1")
    make = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject)
    paths = ("-keyout", str(tmp_path / "key"), "-out", str(file), "-days", "30")
    subprocess.run([*make, *paths], check=True, capture_output=True)
    file.write_text(file.read_text() + (tmp_path / "key").read_text())
    return file


@pytest.fixture
def port(pem: Path) -> Iterator[int]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pem)

    def answer(server: socket.socket) -> None:
        while True:
            try:
                plain, _ = server.accept()
                context.wrap_socket(plain, server_side=True).close()
            except ssl.SSLError:
                continue
            except OSError:
                return

    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=answer, args=[server], daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def check(settings: Settings, now: datetime, **values: str) -> Finding:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=values)
    (finding,) = certificates.check_certificates(now)
    assert (finding.level in {"ok", "unused"}) == (not finding.advice)
    return finding


def test_an_address_shows_a_certificate_that_ends(
    settings: Settings, port: int, pem: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, base = datetime.now().astimezone(), {"base_url": f"https://127.0.0.1:{port}"}
    assert "self-signed" in check(settings, now, **base).text
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    levels = [
        check(settings, now + timedelta(days=days), **base).level
        for days in (0, 20, 40)
    ]
    assert levels == ["ok", "warn", "wrong"]
    nowhere = check(settings, now, base_url="https://127.0.0.1:1")
    assert nowhere.text == "127.0.0.1:1 does not answer (ConnectionRefusedError)"


def test_a_file_of_the_settings_is_read(settings: Settings, pem: Path) -> None:
    now = datetime.now().astimezone()
    assert check(settings, now, database_url="postgresql:///g").level == "unused"
    url = f"rediss://gate.example/0?ssl_ca_certs={pem}"
    assert "is valid until" in check(settings, now, redis_url=url).text
    pem.unlink()
    gone = check(settings, now, redis_url=url)
    assert (gone.level, "cannot be read" in gone.text) == ("wrong", True)
