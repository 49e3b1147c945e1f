"""A proxy that hides https is named, instead of a redirect without an end."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.core.checks import run_checks
from django.http import HttpResponse, HttpResponsePermanentRedirect
from django.test import RequestFactory
from pytest_django import Settings
from structlog.testing import capture_logs

from hitl import base_url, forwarding
from hitl.environment import LOOPBACK
from hitl.health import checks
from hitl.local import installation
from hitl.local.process import Child
from tests.guards import lacking
from tests.stack import Stack, free_port, stop_process, wait_until

HTTPS = "X-Forwarded-Proto https"
# What each server of nginx sends on.
SERVERS = {
    "right": (HTTPS, "Host $http_host"),
    "silent": ("Host $http_host",),
    "plain": ("X-Forwarded-Proto http", "Host $http_host"),
    "portless": (HTTPS, "Host $host"),
}
SERVER = """
server {{
    listen {port} ssl;
    ssl_certificate {folder}/gate.pem;
    ssl_certificate_key {folder}/gate.key;
    location / {{ {headers} proxy_pass http://127.0.0.1:{behind}; }}
}}
"""
NGINX = """
daemon off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    {servers}
}}
"""


@pytest.fixture
def ports(live: Stack, tmp_path: Path) -> Iterator[dict[str, int]]:
    """nginx with TLS before a web process that believes it, a port for each server."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        lacking("nginx")
    ports, behind = {name: free_port() for name in SERVERS}, free_port()
    key = f"{tmp_path}/gate.key"
    subject = ("-subj", "/CN=gate", "-addext", "subjectAltName=IP:127.0.0.1")
    make = ("openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", *subject)
    subprocess.run(
        [*make, "-keyout", key, "-out", f"{tmp_path}/gate.pem"],
        check=True,
        capture_output=True,
    )
    servers = "".join(
        SERVER.format(
            port=ports[name],
            folder=tmp_path,
            behind=behind,
            headers=" ".join(f"proxy_set_header {header};" for header in headers),
        )
        for name, headers in SERVERS.items()
    )
    (tmp_path / "nginx.conf").write_text(NGINX.format(folder=tmp_path, servers=servers))
    nginx = subprocess.Popen(
        [program, "-e", f"{tmp_path}/start.log", "-c", f"{tmp_path}/nginx.conf"]
    )
    environ = {
        **live.environ,
        "PORT": str(behind),
        "BASE_URL": f"https://{LOOPBACK}:{ports['right']}",
    }
    web = installation.build_web_program(live._layout, environ)
    argv = [word for word in web.argv if word != "--no-proxy-headers"]
    child = Child(replace(web, argv=argv))
    ready = f"http://{LOOPBACK}:{behind}/readyz"
    try:
        wait_until(lambda: answers(ready), 60, lambda: live.log("web"))
        yield ports
    finally:
        child.kill()
        stop_process(nginx, 5)


def answers(url: str) -> bool:
    try:
        return httpx2.get(url, trust_env=False).status_code < 500
    except httpx2.HTTPError:
        return False


def get(port: int, path: str = "/sign-in/", **headers: str) -> httpx2.Response:
    with httpx2.Client(verify=False, trust_env=False) as client:
        return client.get(f"https://{LOOPBACK}:{port}{path}", headers=headers)


@pytest.mark.servers
def test_a_real_proxy_without_a_header_is_told_which(
    live: Stack,
    ports: dict[str, int],
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    assert get(ports["right"]).status_code == 200
    for path in ("/sign-in/", "/api/v1/proposals/p-1"):
        answer = get(ports["silent"], path)
        assert answer.status_code == 500
        assert base_url.MISSING in answer.text
    assert get(ports["silent"], "/livez").status_code == 200
    # It may be right: nginx redirects browsers that came by http in this way.
    assert get(ports["plain"]).status_code == 301
    assert live.log("web").count("proxy.headers") == 1

    # A form through a proxy that hides the port.
    port = ports["portless"]
    with httpx2.Client(verify=False, trust_env=False) as client:
        base = f"https://{LOOPBACK}:{port}"
        client.get(f"{base}/sign-in/")
        answer = client.post(f"{base}/sign-in/", data={}, headers={"Origin": base})
    assert answer.status_code == 403
    assert "must send the header Host as the browser sent it" in answer.text

    # `check --deploy` and `doctor` ask in the same way.
    monkeypatch.setenv("SSL_CERT_FILE", f"{tmp_path}/gate.pem")
    for name, fault in {
        "right": "",
        "silent": base_url.MISSING,
        "plain": "it redirects to itself",
    }.items():
        settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(
            update={
                "base_url": f"https://{LOOPBACK}:{ports[name]}",
                "deployment": "production",
            }
        )
        found = [
            m for m in run_checks(include_deployment_checks=True) if m.id == "hitl.E2"
        ]
        (finding,) = checks.check_base_url()
        assert [finding.level] == (["wrong"] if fault else ["ok"])
        assert len(found) == bool(fault)
        assert fault in "".join([finding.text, *(str(m.msg) for m in found)])


def answer_to(settings: Settings, **headers: Any) -> tuple[HttpResponse, list[Any]]:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(
        update={"base_url": "https://gate.example.com"}
    )
    redirect = HttpResponsePermanentRedirect("https://gate.example.com/")
    middleware = forwarding.ProxyHeaders(lambda request: redirect)
    with capture_logs() as logs:
        for _ in range(2):
            answer = middleware(RequestFactory().get("/", headers=headers))
    return answer, logs


@pytest.mark.parametrize(
    ("headers", "fault"),
    [
        ({"Host": "gate.example.com"}, base_url.MISSING),
        ({"Host": "gate.example.com:443"}, base_url.MISSING),
        ({"Host": "10.0.0.1"}, ""),
        ({"Host": "gate.example.com", "X-Forwarded-Proto": "http"}, ""),
        ({"Host": "10.0.0.1", "X-Forwarded-Proto": "https"}, base_url.IGNORED),
        ({"X-Forwarded-Proto": "http", "Sec-Fetch-Site": "none"}, base_url.PLAIN),
    ],
)
def test_only_a_redirect_to_itself_is_a_fault(
    settings: Settings, headers: dict[str, str], fault: str
) -> None:
    answer, logs = answer_to(settings, **headers)
    assert answer.status_code == (500 if fault else 301)
    assert fault in answer.content.decode()
    assert [log["fault"] for log in logs] == ([fault] if fault else [])


def test_a_base_url_where_nobody_answers_is_no_fault_of_a_check(
    settings: Settings,
) -> None:
    away = {"base_url": f"https://{LOOPBACK}:9", "deployment": "production"}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=away)
    (finding,) = checks.check_base_url()
    assert (finding.level, "does not answer" in finding.text) == ("wrong", True)
