"""When certificates end: of the addresses that the settings name, asked over TLS, and
of the files that they name."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from cryptography import x509
from django.conf import settings

from ..doctor import OK, UNUSED, WARN, WRONG, Finding

TIMEOUT_S = 2.0
SOON = timedelta(days=14)
FILES = ("sslcert", "sslrootcert", "ssl_certfile", "ssl_ca_certs")


def check_certificates(now: datetime) -> Iterator[Finding]:
    """Each certificate of the settings, at `now`."""
    rows = [*_check_addresses(now), *_check_files(now)]
    yield from rows or [Finding("Certificates", UNUSED, "the settings name none")]


def _check_addresses(now: datetime) -> Iterator[Finding]:
    counterseal = settings.COUNTERSEAL
    for name, address in (
        ("BASE_URL", counterseal.base_url),
        ("OIDC_ISSUER", counterseal.oidc_issuer),
        ("MAIL_URL", counterseal.mail_url),
    ):
        parts = urlsplit(address)
        if parts.scheme in {"https", "smtps"} and parts.hostname:
            port = parts.port or (443 if parts.scheme == "https" else 465)
            yield _check_address(name, parts.hostname, port, now)


def _check_files(now: datetime) -> Iterator[Finding]:
    counterseal = settings.COUNTERSEAL
    for name, address in (
        ("DATABASE_URL", counterseal.database_url),
        ("REDIS_URL", counterseal.redis_url),
    ):
        for key, value in parse_qsl(urlsplit(address).query):
            if key in FILES and value != "system":
                yield _check_file(f"{name} {key}", Path(value), now)


def _check_address(name: str, host: str, port: int, now: datetime) -> Finding:
    subject = f"Certificate of {name}"
    advice = f"Renew what {host}:{port} shows, or trust its issuer on this host"
    context = ssl.create_default_context()
    try:
        with (
            socket.create_connection((host, port), TIMEOUT_S) as plain,
            context.wrap_socket(plain, server_hostname=host) as secure,
        ):
            shown = secure.getpeercert(binary_form=True)
    except ssl.SSLCertVerificationError as error:
        text = f"is refused: {error.verify_message}"
        return Finding(subject, WRONG, text, advice=advice)
    except OSError as error:
        text = f"{host}:{port} does not answer ({type(error).__name__})"
        return Finding(subject, WARN, text, advice=advice)
    certificate = x509.load_der_x509_certificate(shown or b"")
    return _judge_expiry(subject, certificate.not_valid_after_utc, now, advice)


def _check_file(name: str, path: Path, now: datetime) -> Finding:
    subject = f"Certificate of {name}"
    advice = f"Put a valid certificate into {path}"
    try:
        certificates = x509.load_pem_x509_certificates(path.read_bytes())
    except (OSError, ValueError) as error:
        text = f"{path} cannot be read ({type(error).__name__})"
        return Finding(subject, WRONG, text, advice=advice)
    ends = min(certificate.not_valid_after_utc for certificate in certificates)
    return _judge_expiry(subject, ends, now, advice)


def _judge_expiry(subject: str, ends: datetime, now: datetime, advice: str) -> Finding:
    day = f"{ends.astimezone(UTC):%-d %B %Y}"
    if ends <= now:
        return Finding(subject, WRONG, f"ended on {day}: renew it", advice=advice)
    if ends - now < SOON:
        return Finding(subject, WARN, f"ends on {day}: renew it", advice=advice)
    return Finding(subject, OK, f"is valid until {day}")
