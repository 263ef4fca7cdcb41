from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpcore2
import httpx2
import pytest
import trustme

from toolgen.dispatch.addresses import Allowed
from toolgen.dispatch.settings import ClientCertificate, Http
from toolgen.dispatch.transport import CheckedBackend, CheckedTransport, build_transport, resolve, tls_context
from toolgen.errors import AddressRefused, CredentialsMissing, UsageError
from toolgen.identity.caller import Secret
from toolgen.identity.credentials import Certificate

LOOPBACK = Allowed((), ["127.0.0.0/8", "::1"])
KEEP = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CLOSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


class Server:
    """A server on 127.0.0.1 that counts connections and keeps the heads of its requests."""

    def __init__(self, answer: bytes = KEEP) -> None:
        self.answer = answer
        self.connections = 0
        self.heads: list[tuple[int, str]] = []
        self.names: list[str | None] = []  # TLS server names
        self.certificates: list[object] = []  # of its clients
        self.closed = asyncio.Event()
        self.port = 0
        self.running: list[tuple[asyncio.Task[None], asyncio.StreamWriter]] = []

    def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.running.append((asyncio.ensure_future(self.handle(reader, writer)), writer))

    async def stop(self) -> None:
        for task, writer in self.running:
            writer.close()
            await asyncio.wait_for(task, 5)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        self.certificates.append(writer.get_extra_info("peercert"))
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.heads.append((number, head.decode()))
                writer.write(self.answer)
                await writer.drain()
                if self.answer != KEEP:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        with suppress(OSError):
            writer.close()
            await writer.wait_closed()
        self.closed.set()

    @property
    def hosts(self) -> list[tuple[int, str]]:
        """(connection, Host header without its port) of each request."""
        lines = [(number, line) for number, head in self.heads for line in head.split("\r\n")]
        return [(number, line[6:].partition(":")[0]) for number, line in lines if line.lower().startswith("host: ")]


@asynccontextmanager
async def serving(answer: bytes = KEEP, context: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(answer)
    if context is not None:
        context.sni_callback = lambda _, name, __: server.names.append(name)
    listening = await asyncio.start_server(server.take, "127.0.0.1", 0, ssl=context)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        await server.stop()
        await listening.wait_closed()


class Names:
    """A resolver whose answers are given; it keeps what it was asked."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def client_of(transport: CheckedTransport) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=transport, trust_env=False, timeout=5)


def client(
    allowed: Allowed = LOOPBACK, names: Any = None, http: Http | None = None, context: ssl.SSLContext | None = None
) -> httpx2.AsyncClient:
    names = names or Names(["127.0.0.1"])
    return client_of(build_transport(http or Http(), allowed, resolver=names, context=context or PLAIN))


PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # for requests without TLS: trusts nobody, loads nothing


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


def test_a_request_goes_to_the_address_that_was_checked_under_the_name_of_its_host() -> None:
    async def main() -> None:
        names = Names(["127.0.0.1"])
        async with serving() as server, client(names=names) as asking:
            for _ in range(2):
                answer = await asking.get(f"http://api.example:{server.port}/a?b=c")
                assert (answer.status_code, answer.text) == (200, "ok")
        assert names.asked == ["api.example"]
        assert server.hosts == [(1, "api.example"), (1, "api.example")], "one connection for both"
        assert server.heads[0][1].startswith("GET /a?b=c HTTP/1.1\r\n")

    run(main)


def test_a_host_whose_address_is_not_open_gets_no_connection() -> None:
    async def main() -> None:
        async with serving() as server:
            for answer in (["127.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["::ffff:127.0.0.1"]):
                async with client(Allowed(), Names(answer)) as asking:
                    with pytest.raises(AddressRefused, match=r"api\.example.*loopback"):
                        await asking.get(f"http://api.example:{server.port}/")
        assert server.connections == 0

    run(main)


def test_each_connection_is_judged_by_what_the_name_leads_to_now() -> None:
    async def main() -> None:
        names = Names(["127.0.0.1"], ["10.0.0.1"])
        async with serving(CLOSE) as server, client(names=names) as asking:
            url = f"http://api.example:{server.port}/"
            await asking.get(url)
            with pytest.raises(AddressRefused, match=r"10\.0\.0\.1"):
                await asking.get(url)
        assert server.connections == 1

    run(main)


def test_the_operators_localhost_opens_no_other_name_for_the_same_machine() -> None:
    async def main() -> None:
        async with serving() as server, client(Allowed(["localhost"]), resolve) as asking:
            assert (await asking.get(f"http://localhost:{server.port}/")).text == "ok"
            with pytest.raises(AddressRefused):
                await asking.get(f"http://127.0.0.1:{server.port}/")
        assert server.hosts == [(1, "localhost")]

    run(main)


@pytest.mark.parametrize(
    "host", ["2130706433", "0x7f.1", "127.1", "[::ffff:7f00:1]", "127.0.0.1", "127.0.0.1.", "[::1]"]
)
def test_a_literal_address_is_refused_in_every_spelling_and_never_resolved(host: str) -> None:
    async def main() -> None:
        names = Names(["8.8.8.8"])
        async with serving() as server, client(Allowed(), names) as asking:
            with pytest.raises(AddressRefused):
                await asking.get(f"http://{host}:{server.port}/")
        assert (names.asked, server.connections) == ([], 0)

    run(main)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def trusting(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Http:
    bundle = tmp_path_factory.mktemp("tls") / "ca.pem"
    authority.cert_pem.write_to_path(bundle)
    return Http(ca_bundle=str(bundle))


def certified(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


def test_tls_knows_the_host_by_its_name_and_hosts_at_one_address_share_no_connection(
    authority: trustme.CA, trusting: Http
) -> None:
    async def main() -> None:
        context = certified(authority, "a.example", "b.example")
        async with serving(context=context) as server, client(http=trusting, context=tls_context(trusting)) as asking:
            for name in ("a.example", "b.example", "a.example"):
                await asking.get(f"https://{name}:{server.port}/")
        assert server.hosts == [(1, "a.example"), (2, "b.example"), (1, "a.example")]
        assert server.names == ["a.example", "b.example"]

    run(main)


@pytest.mark.parametrize("certificate_for", ["other.example", "127.0.0.1"])
def test_a_certificate_for_another_name_or_for_the_address_is_refused(
    authority: trustme.CA, trusting: Http, certificate_for: str
) -> None:
    async def main() -> None:
        context = certified(authority, certificate_for)
        async with serving(context=context) as server, client(context=tls_context(trusting)) as asking:
            with pytest.raises(httpx2.ConnectError, match=r"(?i)certificate"):
                await asking.get(f"https://api.example:{server.port}/")
        assert server.heads == []

    run(main)


def test_the_environment_neither_trusts_an_authority_nor_sets_a_proxy(
    authority: trustme.CA, trusting: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert trusting.ca_bundle is not None
    monkeypatch.setenv("SSL_CERT_FILE", trusting.ca_bundle)

    async def main() -> None:
        async with (
            serving(context=certified(authority, "api.example")) as server,
            serving() as proxy,
            client(context=tls_context(Http())) as asking,
        ):
            monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.port}")
            monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
            with pytest.raises(httpx2.ConnectError, match=r"(?i)certificate"):
                await asking.get(f"https://api.example:{server.port}/")
        assert (server.heads, proxy.connections) == ([], 0)

    run(main)


def test_the_tls_context_verifies_and_speaks_tls_1_2_or_later(trusting: Http) -> None:
    for context in (tls_context(Http()), tls_context(trusting)):
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.check_hostname
        assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


PASSWORD = "open sesame"


@pytest.fixture
def own_certificate(authority: trustme.CA, tmp_path: Path) -> Certificate:
    """A client certificate whose key has a password."""
    from cryptography.hazmat.primitives import serialization as pem

    issued = authority.issue_cert("client.example")
    certificate, key = tmp_path / "client.pem", tmp_path / "client.key"
    issued.cert_chain_pems[0].write_to_path(certificate)
    locked = pem.load_pem_private_key(issued.private_key_pem.bytes(), None).private_bytes(
        pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.BestAvailableEncryption(PASSWORD.encode())
    )
    key.write_bytes(locked)
    return Certificate(str(certificate), str(key), Secret(PASSWORD))


def asking_for_certificates(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = certified(authority, *names)
    context.verify_mode = ssl.CERT_OPTIONAL
    authority.configure_trust(context)
    return context


def by_settings(trusting: Http, certificate: Certificate) -> Http:
    return replace(
        trusting, client_certificate=ClientCertificate(certificate.certificate, certificate.key, "${env:KEY_PASSWORD}")
    )


def test_a_client_certificate_is_shown_to_a_server_that_asks(
    authority: trustme.CA, trusting: Http, own_certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_PASSWORD", PASSWORD)
    of_settings = tls_context(by_settings(trusting, own_certificate))

    async def main() -> None:
        async with serving(context=asking_for_certificates(authority, "api.example")) as server:
            for context in (tls_context(trusting, own_certificate), of_settings, tls_context(trusting)):
                async with client(context=context) as asking:
                    assert (await asking.get(f"https://api.example:{server.port}/")).text == "ok"
        assert [bool(shown) for shown in server.certificates] == [True, True, False]

    run(main)


def test_a_client_certificate_is_not_shown_to_a_proxy(
    authority: trustme.CA, trusting: Http, own_certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_PASSWORD", PASSWORD)

    async def main() -> None:
        async with serving(context=asking_for_certificates(authority, "localhost")) as proxy:
            http = replace(by_settings(trusting, own_certificate), proxy=f"https://localhost:{proxy.port}")
            async with client_of(build_transport(http, Allowed())) as asking:
                assert (await asking.get("http://api.example/")).text == "ok"
        assert [bool(shown) for shown in proxy.certificates] == [False]

    run(main)


@pytest.mark.parametrize("password", [None, Secret("open barley")])
def test_a_client_certificate_that_cannot_be_opened_is_an_error_that_asks_nobody_and_shows_no_password(
    own_certificate: Certificate, password: Secret | None
) -> None:
    with pytest.raises(CredentialsMissing, match=r"client\.pem: certificate, key and password") as caught:
        tls_context(Http(), replace(own_certificate, password=password))
    assert "barley" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_file_that_holds_no_certificates_is_named(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")
    with pytest.raises(UsageError, match=r"ca_bundle .*empty\.pem: holds no certificates"):
        tls_context(Http(ca_bundle=str(empty)))


class Network(httpcore2.AsyncNetworkBackend):
    """Takes connections to addresses that are never reached; each tries the next of `failures`."""

    def __init__(self, *failures: Exception | None) -> None:
        self.failures = list(failures)
        self.tried: list[str] = []
        self.shares: list[float | None] = []
        self.stream = httpcore2.AsyncMockStream([])

    async def connect_tcp(self, host: str, port: int, timeout: float | None = None, *_: Any) -> Any:
        self.tried.append(host)
        self.shares.append(timeout)
        failure = self.failures.pop(0)
        if failure is not None:
            raise failure
        return self.stream


async def connected(network: Network, addresses: Sequence[str], timeout: float | None = None) -> Any:
    return await CheckedBackend(Allowed(), Names(addresses), network).connect_tcp("api.example", 443, timeout)


@pytest.mark.parametrize("failure", [httpcore2.ConnectError("refused"), httpcore2.ConnectTimeout("late")])
def test_the_next_checked_address_is_tried_where_one_cannot_be_reached(failure: Exception) -> None:
    async def main() -> None:
        network = Network(failure, None)
        assert await connected(network, ["8.8.8.8", "2606:4700::1", "1.1.1.1"]) is network.stream
        assert network.tried == ["8.8.8.8", "2606:4700::1"]

    run(main)


def test_the_last_failure_is_told_where_no_address_can_be_reached() -> None:
    async def main() -> None:
        with pytest.raises(httpcore2.ConnectTimeout, match="late"):
            await connected(
                Network(httpcore2.ConnectError("no"), httpcore2.ConnectTimeout("late")), ["8.8.8.8", "1.1.1.1"]
            )
        with pytest.raises(httpcore2.ConnectError, match="no address"):
            await connected(Network(), [])

    run(main)


def test_another_failure_than_to_connect_is_not_tried_again() -> None:
    async def main() -> None:
        network = Network(httpcore2.ReadError("gone"), None)
        with pytest.raises(httpcore2.ReadError):
            await connected(network, ["8.8.8.8", "1.1.1.1"])
        assert network.tried == ["8.8.8.8"]

    run(main)


def test_all_addresses_together_have_the_time_for_one_connection() -> None:
    async def main() -> None:
        network = Network(*[httpcore2.ConnectTimeout("late")] * 3, None)
        await connected(network, ["8.8.8.8", "8.8.4.4", "1.1.1.1", "1.0.0.1"], timeout=100)
        assert 24 < (network.shares[0] or 0) <= 25
        assert 99 < (network.shares[3] or 0) <= 100, "the last one has all that is left"

    run(main)


def test_a_name_without_an_address_or_one_that_takes_too_long_is_no_connection() -> None:
    async def unknown(host: str, port: int) -> Sequence[str]:
        raise OSError("no such name")

    async def never(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    async def main() -> None:
        async with client(names=unknown) as asking:
            with pytest.raises(httpx2.ConnectError, match=r"api\.example cannot be resolved"):
                await asking.get("http://api.example/")
        async with client(names=never) as asking, asyncio.timeout(3):
            with pytest.raises(httpx2.ConnectTimeout, match=r"api\.example was not resolved in time"):
                await asking.get("http://api.example/", timeout=0.05)

    run(main)


def test_with_a_proxy_the_connection_is_its_own_and_only_literal_addresses_are_judged() -> None:
    async def main() -> None:
        async with serving() as proxy:
            names = Names(["10.0.0.1"])
            http = Http(proxy=f"http://user:pass@127.0.0.1:{proxy.port}")
            transport = build_transport(http, Allowed(), resolver=names, context=PLAIN)
            assert not transport.checked
            async with client_of(transport) as asking:
                assert (await asking.get("http://api.example/a")).text == "ok"
                for host in ("10.0.0.1", "localhost", "169.254.169.254", "[::ffff:7f00:1]", "0x7f.1"):
                    with pytest.raises(AddressRefused):
                        await asking.get(f"http://{host}/")
            ((_, head),) = proxy.heads
            assert head.startswith("GET http://api.example/a HTTP/1.1\r\n")
            assert "Proxy-Authorization: Basic dXNlcjpwYXNz" in head
            assert names.asked == []

    run(main)


def test_without_a_proxy_the_transport_says_that_it_checks() -> None:
    assert build_transport(Http(), Allowed(), context=PLAIN).checked


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", httpx2.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nX: token-1\x00\r\n\r\n", httpx2.RemoteProtocolError),
        (b"no HTTP", httpx2.RemoteProtocolError),
    ],
)
def test_an_answer_that_breaks_off_or_is_no_http_is_an_error_of_httpx2_that_quotes_nothing(
    answer: bytes, kind: type[Exception]
) -> None:
    async def main() -> None:
        async with serving(answer) as server, client() as asking:
            with pytest.raises(kind) as caught:
                await asking.get(f"http://api.example:{server.port}/")
            assert str(caught.value) == "the server does not keep to HTTP"
            assert caught.value.__suppress_context__

    run(main)


def test_a_header_that_cannot_be_sent_is_not_quoted() -> None:
    async def main() -> None:
        async with serving() as server, client() as asking:
            with pytest.raises(httpx2.LocalProtocolError) as caught:
                await asking.get(f"http://api.example:{server.port}/", headers={"Authorization": "s3cret\n"})
            assert "s3cret" not in str(caught.value)
            assert caught.value.__suppress_context__
        assert server.heads == []

    run(main)


def test_closing_the_transport_closes_its_connections() -> None:
    async def main() -> None:
        async with serving() as server:
            transport = build_transport(Http(), LOOPBACK, resolver=Names(["127.0.0.1"]), context=PLAIN)
            asking = client_of(transport)
            await asking.get(f"http://api.example:{server.port}/")
            assert not server.closed.is_set()
            await transport.aclose()
            await asyncio.wait_for(server.closed.wait(), 5)

    run(main)
