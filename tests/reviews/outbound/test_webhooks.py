"""T19: nothing but a checked address is ever connected to; and what is known after."""

from __future__ import annotations

import socket
import ssl
import sys
import threading
from collections.abc import Callable
from ipaddress import IPv6Address
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook

from reviews.outbound import addresses, webhooks
from tests.reviews import service as services

connected: list[object] = []


def note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "socket.connect":
        connected.append(arguments[1])


# Python reports every attempt to connect, also one that no listener could count.
sys.addaudithook(note)


def words(text: str) -> list[str]:
    return text.split()


# Loopback is a whole network: its other addresses are the neighbours of these tests.
loopback = pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "127.0.0.3"])
PUBLIC = "93.184.215.14"

# Ways to write loopback, metadata and private addresses.
# `{port}` is the port of a real listener on 0.0.0.0 that counts connections.
REFUSED_HOSTS = words("""
127.0.0.1 127.1 127.0.1 0x7f000001 0x7f.0.0.1 0X7F000001 2130706433 017700000001
0177.0.0.1 0177.0.0.01 127.0.0.1. 127.000.000.001 0 0.0.0.0 00000000000 127.127.127.127
[::1] [::] [0:0:0:0:0:0:0:1] [::127.0.0.1] [::ffff:127.0.0.1] [::ffff:7f00:1]
[::ffff:0:127.0.0.1] [::ffff:169.254.169.254] ::127.0.0.1 64:ff9b::a9fe:a9fe ::1
[64:ff9b::a9fe:a9fe] [64:ff9b::7f00:1] [64:ff9b:1::7f00:1] [2002:7f00:1::]
[2002:a9fe:a9fe::1] [2001:0:7f00:1::] [2001:db8::1] [fe80::1] [fe80::1%25lo]
[fe80::1%lo] [fc00::1] [fd00:ec2::254] [fec0::1] [ff02::1] [100::1] [3fff::1] [5f00::1]
localhost localhost. LOCALHOST ip6-localhost localhost.localdomain
169.254.169.254 2852039166 0xa9fea9fe 0251.0376.0251.0376 169.254.43518
10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1 100.100.100.200
192.0.0.192 192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.1 192.88.99.1 168.63.129.16
224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255
127\u30020\u30020\u30021 127\uff0e0\uff0e0\uff0e1 127\uff610\uff610\uff611
\u2460\u2461\u2466.0.0.1 \uff4c\uff4f\uff43\uff41\uff4c\uff48\uff4f\uff53\uff54
127%2e0%2e0%2e1 %31%32%37.0.0.1 127.0.0.1%00.example.com [127.0.0.1] [v1.127.0.0.1]
user@127.0.0.1 user:pw@127.0.0.1 example.com@127.0.0.1 @127.0.0.1
127.0.0.1\\@example.com example.com\\@127.0.0.1 127.0.0.1\\.example.com
-example.com example..com .example.com exa$mple.com a,b
""")
# Names that some machines cannot resolve; there they are not even an address.
UNKNOWN_TO_SOME = {"localhost.", "ip6-localhost", "localhost.localdomain"}
SCHEMES = ("http", "https", "HTTP", "gopher", "ftp")
REFUSED_URLS = words("""
gopher://127.0.0.1:{port}/_PING file:///etc/passwd ftp://127.0.0.1:{port}/
dict://127.0.0.1:{port}/ ldap://127.0.0.1:{port}/ data:text/plain,hi javascript:alert(1)
//127.0.0.1:{port}/ 127.0.0.1:{port} http:/127.0.0.1:{port}/ http:///127.0.0.1:{port}/
http://127.0.0.1:{port}/#fragment http://127.0.0.1:{port}\\@example.com/
http://127.0.0.1:0x1/ http://127.0.0.1:99999/ http://127.0.0.1:-1/ http://
http://:{port}/ https://127.0.0.1:{port}/ unix:///tmp/socket http+unix://%2ftmp%2fsocket/
""")


@pytest.fixture
def listener(networks):
    """Answers on every IPv4 address of this machine; nothing is allowed."""
    with services.running("0.0.0.0") as running:
        yield running


def send(url, *, resolve=addresses.look_up_host, timeout=2, **options):
    with mock.patch.object(addresses, "look_up_host", resolve):
        return webhooks.post_signed_json(url, {"n": 1}, timeout=timeout, **options)


class TestWhereItMayGo:
    @pytest.mark.parametrize("host", REFUSED_HOSTS)
    def test_a_disguised_address_is_never_connected_to(self, listener, host):
        connected.clear()
        with pytest.raises(webhooks.NotSent) as caught:
            send(f"http://{host}:{listener.port}/")
        assert (connected, listener.connections) == ([], 0)
        if host not in UNKNOWN_TO_SOME:
            assert isinstance(caught.value, webhooks.NotAllowed)

    @pytest.mark.parametrize("url", REFUSED_URLS)
    def test_only_plain_http_addresses_are_called(self, listener, url):
        with pytest.raises(webhooks.NotAllowed):
            send(url.format(port=listener.port))
        assert listener.connections == 0

    @pytest.mark.proof
    def test_t19_no_form_of_a_forbidden_address_is_connected_to(
        self, listener, record_proof
    ):
        connected.clear()
        urls = [url.format(port=listener.port) for url in REFUSED_URLS]
        for host in REFUSED_HOSTS:
            urls += [f"{scheme}://{host}:{listener.port}/" for scheme in SCHEMES]
            urls.append(f"http://{host}:6379/")
        for url in urls:
            with pytest.raises(webhooks.NotSent):
                send(url)
        assert (connected, listener.connections) == ([], 0)
        record_proof("T19", f"{len(urls)} forbidden addresses: 0 connections")

    @pytest.mark.parametrize(
        "text", [" {}", "{} ", "{}\t", "{}\n", "\x00{}", "{}\u200b"]
    )
    def test_stray_characters_are_refused_not_stripped(self, service, text):
        with pytest.raises(webhooks.NotAllowed):
            send(text.format(service.url))
        assert service.connections == 0

    @pytest.mark.parametrize("port", [0, 21, 22, 25, 53, 110, 3306, 5432, 6379, 11211])
    def test_ports_of_other_services_are_refused_even_where_allowed(
        self, networks, port
    ):
        networks("127.0.0.0/8")
        with pytest.raises(webhooks.NotAllowed, match="port"):
            send(f"http://127.0.0.1:{port}/")

    def test_a_name_with_one_private_answer_is_refused_whole(self, listener):
        for answers in ([PUBLIC, "127.0.0.1"], ["127.0.0.1", PUBLIC], ["::1", PUBLIC]):
            with pytest.raises(webhooks.NotAllowed):
                send(
                    f"http://two.example:{listener.port}/",
                    resolve=lambda host, port, found=answers: found,
                )
        assert listener.connections == 0

    @loopback
    def test_a_name_that_changes_its_answer_is_asked_once_and_pinned(self, networks):
        networks("127.0.0.1/32")
        asked = []

        def rebinding(host, port):
            asked.append(host)
            return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

        with (
            services.running() as good,
            services.running("127.0.0.2", good.port) as bad,
        ):
            url = f"http://rebind.example:{good.port}/hook"
            assert send(url, resolve=rebinding).status == 200
            host = good.requests[0][1]["Host"]
            assert host == f"rebind.example:{good.port}"
            assert (good.connections, bad.connections) == (1, 0)
            with pytest.raises(webhooks.NotAllowed):
                send(url, resolve=rebinding)
            assert (good.connections, bad.connections) == (1, 0)
        assert len(asked) == 2

    @loopback
    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_a_redirect_is_an_answer_and_never_followed(
        self, networks, service, status
    ):
        networks("127.0.0.0/8")
        service.status = status
        with services.running("127.0.0.2") as other:
            allowed = f"http://127.0.0.2:{other.port}/"
            for location in (allowed, "http://169.254.169.254/latest/meta-data/"):
                service.headers = {"Location": location}
                reply = send(service.url)
                assert reply.status == status
                with pytest.raises(webhooks.NoUsableAnswer):
                    reply.document()
            assert other.connections == 0
        assert service.connections == 2

    def test_a_proxy_in_the_environment_is_not_used(self, service, monkeypatch):
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:1")
        assert send(service.url).status == 200

    @loopback
    def test_one_allowed_address_does_not_open_its_neighbours(self, networks):
        networks("127.0.0.1/32")
        with services.running("0.0.0.0") as everywhere:
            with pytest.raises(webhooks.NotAllowed):
                send(f"http://127.0.0.2:{everywhere.port}/")
            with pytest.raises(webhooks.NotAllowed):
                send(f"http://[::ffff:127.0.0.1]:{everywhere.port}/")
            assert everywhere.connections == 0
            assert send(f"http://127.0.0.1:{everywhere.port}/").status == 200

    @given(st.ip_addresses(v=4) | st.ip_addresses(v=6))
    def test_nothing_that_python_calls_private_is_allowed(self, address):
        if not address.is_global or address.is_multicast or address.is_reserved:
            assert not addresses.is_allowed(str(address), [])

    @given(st.ip_addresses(v=4))
    def test_no_form_that_carries_an_ipv4_address_is_allowed(self, inner):
        whole = int(inner)
        for prefix in ("::", "::ffff:0:0", "::ffff:0:0:0", "64:ff9b::", "64:ff9b:1::"):
            carried = IPv6Address(int(IPv6Address(prefix)) + whole)
            assert not addresses.is_allowed(str(carried), [])
        six = IPv6Address((0x2002 << 112) + (whole << 80) + 1)
        assert not addresses.is_allowed(str(six), [])

    def test_public_addresses_are_allowed(self):
        for text in (PUBLIC, "1.1.1.1", "2606:4700:4700::1111", "2a00:1450::1"):
            assert addresses.is_allowed(text, [])


class TestWhatIsKnown:
    def test_a_complete_answer_is_returned_whatever_its_status(self, service):
        for status in (200, 201, 400, 404, 409, 422, 500, 503):
            service.status = status
            assert send(service.url) == webhooks.WebhookReply(status, service.body)

    def test_only_a_json_object_of_a_200_is_a_document(self, service):
        assert send(service.url).document() == {"status": "succeeded"}
        for status, body in ((202, {}), (500, {}), (200, []), (200, b"")):
            service.status, service.body = status, body
            with pytest.raises(webhooks.NoUsableAnswer):
                send(service.url).document()

    @pytest.mark.parametrize(
        "body",
        [
            b"ok",
            b"{",
            b'{"a": 1}x',
            b'{"status": "failed", "status": "succeeded"}',
            b"\xff\xfe{}",
            b"[" * 5000 + b"]" * 5000,
            b'{"a": NaN}',
            b" " * (webhooks.REPLY_LIMIT + 1),
        ],
    )
    def test_an_answer_that_cannot_be_read_is_ambiguous(self, service, body):
        service.body = body
        with pytest.raises(webhooks.NoUsableAnswer):
            send(service.url)

    @pytest.mark.parametrize("trick", ["reset", "hang", "cut", "drip"])
    def test_what_breaks_or_hangs_after_sending_is_ambiguous(self, service, trick):
        service.trick = trick
        with pytest.raises(webhooks.NoUsableAnswer):
            webhooks.post_signed_json(service.url, {}, timeout=0.4)
        assert len(service.requests) == 1

    def test_a_refused_connection_is_known_to_have_sent_nothing(self, networks):
        networks("127.0.0.1/32")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # bound, not listening
            with pytest.raises(webhooks.NotSent) as caught:
                send(f"http://127.0.0.1:{taken.getsockname()[1]}/")
        assert not isinstance(caught.value, webhooks.NotAllowed)

    @loopback
    def test_the_next_address_is_tried_when_one_refuses(self, networks):
        networks("127.0.0.0/8")
        with services.running("127.0.0.2") as second:
            url = f"http://both.example:{second.port}/"
            found = ["127.0.0.3", "127.0.0.2"]
            assert send(url, resolve=lambda *_: found).status == 200
        assert second.connections == 1

    def test_a_name_that_does_not_resolve_is_known_to_have_sent_nothing(self, networks):
        over = threading.Event()

        def fails(host, port):
            raise socket.gaierror("no such name")

        def never(host, port):
            over.wait(services.PATIENCE_S)
            return []

        resolvers: list[Callable[[str, int], list[str]]] = [fails, never, lambda *_: []]
        for resolve in resolvers:
            with pytest.raises(webhooks.NotSent):
                send("http://x.example/", resolve=resolve, timeout=0.3)
        over.set()

    def test_a_failed_tls_handshake_is_known_to_have_sent_nothing(self, service):
        """The service speaks plain HTTP: no byte of the request may reach it."""
        with pytest.raises(webhooks.NotSent):
            send(service.url.replace("http:", "https:"))
        assert service.requests == []

    def test_tls_checks_as_strictly_as_pythons_own_default(self, service, monkeypatch):
        strict, used = ssl.create_default_context(), []

        def wrap(context, sock, **options):
            used.append((context, options))
            raise ssl.SSLError("seen enough")

        monkeypatch.setattr(ssl.SSLContext, "wrap_socket", wrap)
        with pytest.raises(webhooks.NotSent):
            send(service.url.replace("http:", "https:"))
        [(context, options)] = used
        assert options == {"server_hostname": "127.0.0.1"}
        for name in ("verify_mode", "check_hostname", "verify_flags", "options"):
            assert getattr(context, name) == getattr(strict, name)
        assert context.minimum_version == strict.minimum_version

    def test_a_payload_that_is_not_json_is_known_to_have_sent_nothing(self, service):
        with pytest.raises(webhooks.NotSent):
            webhooks.post_signed_json(service.url, {"n": 2**60}, timeout=1)
        assert service.connections == 0


class TestTheMessage:
    def test_it_is_signed_so_that_the_service_can_verify_it(self, service, settings):
        send(service.url, message="x-1", headers={"Idempotency-Key": "k"})
        path, headers, body = service.requests[0]
        verifier = Webhook(settings.COUNTERSEAL.webhook_secret)
        assert verifier.verify(body, headers) == {"n": 1}
        lower = {name.lower(): value for name, value in headers.items()}
        assert (path, lower["webhook-id"]) == ("/hook", "x-1")
        assert lower["idempotency-key"] == "k"
        assert lower["host"] == f"127.0.0.1:{service.port}"

    def test_it_carries_no_cookie_and_no_credentials(self, service):
        send(service.url)
        names = {name.lower() for name in service.requests[0][1]}
        assert names == {
            *("host", "content-length", "content-type", "accept", "accept-encoding"),
            *("user-agent", "webhook-id", "webhook-timestamp", "webhook-signature"),
        }

    def test_the_body_is_canonical(self, service):
        webhooks.post_signed_json(service.url, {"b": 1, "a": "\u00e9"}, timeout=1)
        assert service.requests[0][2] == '{"a":"\u00e9","b":1}'.encode()
