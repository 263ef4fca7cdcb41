"""The transport that connects to nothing but addresses it has checked.

The check stands where the connection is made, in the network backend of the connection pool. So each
connection is judged by the addresses it is about to use, whatever the name led to before; nothing
resolves the name a second time; and the pool, the Host header, the TLS server name and the check of the
certificate know the host by its name, never by an address that others may share.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import Any, NoReturn

import httpcore2
import httpx2

from toolgen.dispatch.addresses import Allowed, literal
from toolgen.dispatch.quiet import quiet
from toolgen.dispatch.settings import ClientCertificate, Http
from toolgen.errors import CredentialsMissing, UsageError
from toolgen.identity.credentials import Certificate
from toolgen.identity.origin import Origin
from toolgen.identity.references import parse
from toolgen.identity.secrets import fill

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""(host, port) -> its addresses as texts; raises OSError where there are none."""

_FAULTS = (
    httpcore2.TimeoutException,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    httpcore2.UnsupportedProtocol,
)


class CheckedTransport(httpx2.AsyncBaseTransport):
    """HTTP/1.1 over connections to checked addresses, kept per scheme, host and port.

    With a proxy `checked` is False: the proxy resolves names and connects, so whether an address may be
    reached is its decision. Refused here is then only what needs no resolving: a literal address that is
    not open, and `localhost`. The proxy's own address is the operator's and is not judged.

    A transport belongs to one event loop. Raises AddressRefused, and the errors of httpx2; their messages
    hold nothing of headers and bodies.
    """

    def __init__(
        self, http: Http, allowed: Allowed, context: ssl.SSLContext, *, resolver: Resolver | None = None
    ) -> None:
        self.checked = http.proxy is None
        self._allowed = allowed
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            proxy=_proxy(http, http.proxy) if http.proxy else None,
            max_connections=http.max_connections,
            max_keepalive_connections=http.max_idle,
            keepalive_expiry=5.0,
            retries=0,
            network_backend=CheckedBackend(allowed, resolver or resolve) if self.checked else _Network(),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request as it is; its answer is still to be read, and to be closed."""
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        url = request.url
        if not self.checked:
            self._allowed.check_host(
                url.raw_host.decode("ascii"), url.port or {"http": 80, "https": 443}.get(url.scheme)
            )
        sent = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with quiet(), _as_httpx2():
            answer = await self._pool.handle_async_request(sent)
        return httpx2.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_AnswerStream(answer),
            extensions=answer.extensions,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


def build_transport(
    http: Http, allowed: Allowed, *, context: ssl.SSLContext | None = None, resolver: Resolver | None = None
) -> CheckedTransport:
    """The transport of these settings. A context that `tls_context` made can be shared by many.

    Raises UsageError and CredentialsMissing like `tls_context`.
    """
    return CheckedTransport(http, allowed, context or tls_context(http), resolver=resolver)


def tls_context(http: Http, certificate: Certificate | None = None) -> ssl.SSLContext:
    """TLS 1.2 or later, certificate and host name verified, nothing read from the environment.

    `certificate` is shown to the server instead of that of the settings. Trusted are the roots of the
    machine, or with `ca_bundle` those of the file alone. Reads files: about 30 ms, so keep it. Raises
    UsageError for a bundle and CredentialsMissing for a certificate that cannot be used.
    """
    if http.ca_bundle is None:
        context = httpx2.create_ssl_context(trust_env=False)
    else:
        try:
            context = ssl.create_default_context(cafile=http.ca_bundle)
        except OSError as exc:  # ssl.SSLError is one
            raise UsageError(f"ca_bundle {http.ca_bundle}: {_reason(exc, 'holds no certificates in PEM')}") from None
    context.minimum_version = max(context.minimum_version, ssl.TLSVersion.TLSv1_2)
    shown = certificate or _certificate(http.client_certificate)
    if shown is not None:
        try:
            # An empty password where there is none: OpenSSL would ask on the terminal for it.
            context.load_cert_chain(shown.certificate, shown.key, shown.password.reveal() if shown.password else "")
        except (OSError, ValueError) as exc:
            fault = _reason(exc, "certificate, key and password do not belong together or are no PEM")
            raise CredentialsMissing(f"client certificate {shown.certificate}: {fault}") from None
    return context


def no_tls() -> ssl.SSLContext:
    """A context for a server without TLS: it trusts nobody, and reads no files."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _certificate(settings: ClientCertificate | None) -> Certificate | None:
    """The certificate of the settings with its password filled in; that is never a caller's."""
    if settings is None:
        return None
    if settings.password is None:
        return Certificate(settings.certificate, settings.key)
    nowhere = Origin("https", "localhost", 443)
    password = fill(parse(settings.password), caller=None, origin=nowhere, encoded=True)
    return Certificate(settings.certificate, settings.key, password.text)


def _reason(exc: Exception, otherwise: str) -> str:
    """What the system says of a file; what OpenSSL says tells people nothing."""
    reason = exc.strerror if isinstance(exc, OSError) and not isinstance(exc, ssl.SSLError) else None
    return reason or otherwise


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses the system has for a host, in its order (RFC 6724)."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class _Network(httpcore2.AnyIOBackend):
    """Connections that are closed if TLS does not come about, cancelled or not."""

    async def connect_tcp(self, *args: Any, **kwargs: Any) -> httpcore2.AsyncNetworkStream:
        return _Stream(await super().connect_tcp(*args, **kwargs))


class _Stream(httpcore2.AsyncNetworkStream):
    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(self, *args: Any, **kwargs: Any) -> httpcore2.AsyncNetworkStream:
        try:
            return await self._stream.start_tls(*args, **kwargs)
        except BaseException:
            await self._stream.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Opens connections for a pool: resolves a host, has its addresses checked, and connects to one of those.

    All of them must be open. They are tried in order, within the time for one connection: each gets its
    share of what is left. `network` is what connects to an address.
    """

    def __init__(
        self, allowed: Allowed, resolver: Resolver, network: httpcore2.AsyncNetworkBackend | None = None
    ) -> None:
        self._allowed = allowed
        self._resolver = resolver
        self._network = network or _Network()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """A connection to a checked address of the host; raises AddressRefused and the errors of httpcore2."""
        now = asyncio.get_running_loop().time
        end = None if timeout is None else now() + timeout
        addresses = self._allowed.check(host, await self._addresses(host, port, timeout), port)
        failure: Exception = httpcore2.ConnectError(f"{host} has no address")
        for position, address in enumerate(addresses):
            share = None if end is None else max(end - now(), 0) / (len(addresses) - position)
            try:
                return await self._network.connect_tcp(address, port, share, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as exc:
                failure = exc
        raise failure

    async def _addresses(self, host: str, port: int, timeout: float | None) -> Sequence[str]:
        address = literal(host)
        if address is not None:
            return [str(address)]
        try:
            async with asyncio.timeout(timeout):
                return await self._resolver(host, port)
        except TimeoutError:
            raise httpcore2.ConnectTimeout(f"{host} was not resolved in time") from None
        except (OSError, UnicodeError):
            raise httpcore2.ConnectError(f"{host} cannot be resolved") from None


class _AnswerStream(httpx2.AsyncByteStream):
    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with aclosing(self._answer.aiter_stream()) as parts:
            while True:
                with quiet(), _as_httpx2():
                    part = await anext(parts, None)
                if part is None:
                    return
                yield part

    async def aclose(self) -> None:
        with quiet(), _as_httpx2():
            await self._answer.aclose()


@contextmanager
def _as_httpx2() -> Iterator[None]:
    try:
        yield
    except _FAULTS as exc:
        _raise_as_httpx2(exc)


def _raise_as_httpx2(exc: Exception) -> NoReturn:
    """Raise the error of httpx2 that has the same name, or the name of the nearest base."""
    kinds = (getattr(httpx2, base.__name__, None) for base in type(exc).__mro__)
    kind: type[httpx2.TransportError] = next(found for found in kinds if found is not None)
    text = str(exc)
    if isinstance(exc, httpcore2.ProtocolError):  # what breaks it is quoted, and may be a credential
        text = f"the {'server' if isinstance(exc, httpcore2.RemoteProtocolError) else 'request'} does not keep to HTTP"
    raise kind(text) from None


def _proxy(http: Http, url: str) -> httpcore2.Proxy:
    parsed = httpx2.Proxy(url)
    own = parsed.url
    # Without the client certificate: that is for the upstream.
    context = tls_context(replace(http, client_certificate=None)) if own.scheme == "https" else None
    return httpcore2.Proxy(
        url=httpcore2.URL(scheme=own.raw_scheme, host=own.raw_host, port=own.port, target=own.raw_path),
        auth=parsed.raw_auth,
        ssl_context=context,
    )
