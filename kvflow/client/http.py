"""HTTP with errors a person can read, and the one way in which its library is set up."""

import asyncio
import json
import os
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import httpx2

from kvflow.client.certificates import TRUST_HINT, trusted
from kvflow.errors import (
    KvflowError,
    NotAuthorised,
    ServerUnreachable,
    UsageError,
    printable,
)
from kvflow.loopback import is_loopback

Body = Mapping[str, Any]

KEY_HINT = "set KVFLOW_API_KEY; kvflow run and kvflow top take --api-key-file as well"
"""Where the commands that call a server look for its key."""

_CONNECT_S = 10.0
# SGLang's HTTP server closes idle connections after 5 s. A request that races with that would be
# lost through no fault of the server, and retries would hide latency: let go earlier.
_IDLE_S = 2.0
_START_HINT = 'start a server with "kvflow serve --recipe FILE", or give the URL of one'
_PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy")


class TimedOutError(KvflowError):
    """The server took longer than it was given."""


class RefusedError(KvflowError):
    """The server answered with an HTTP status that is an error.

    Args:
        what: what failed.
        status: the HTTP status.
        why: the server's own words.
    """

    def __init__(self, what: str, status: int, why: str) -> None:
        super().__init__(what, why)
        self.status = status


class NonsenseError(KvflowError):
    """The server answered with something that is no answer to the request, or broke off."""


class Http:
    """Connections to one server. Use as an async context manager.

    Args:
        url: where the server is; the scheme and a trailing /v1 may be left out or be there.
        api_key: sent as a bearer token; never part of an error.
        timeout_s: seconds that a request may take in all, answer included.

    Raises:
        UsageError: the URL is none, the time is not positive, or a proxy of the environment is of
            no use, or its certificates cannot be read.
    """

    def __init__(self, url: str, api_key: str | None, timeout_s: float) -> None:
        if timeout_s <= 0:
            raise UsageError(f"a timeout of {timeout_s:g} s", "it must be more than 0")
        parsed = _parse(url)
        self.url = str(parsed).rstrip("/")
        self._timeout_s = timeout_s
        self._client = new_client(self.url, api_key, timeout_s)

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client.__aexit__(kind, error, trace)

    async def get(self, path: str, what: str) -> Any:
        """The JSON at a path.

        Raises:
            ServerUnreachable, NotAuthorised, TimedOutError, RefusedError, NonsenseError: each
                names `what`.
        """
        return _json((await self.get_raw(path, what)).decode(errors="replace"), what)

    async def get_raw(self, path: str, what: str) -> bytes:
        """The body at a path, for who reads it better. Raises as `get` does."""
        with self._explained(what):
            async with asyncio.timeout(self._timeout_s):
                response = await self._client.get(path)
        self._check(response, what)
        return response.content

    async def post(self, path: str, body: Body, what: str) -> Any:
        """The JSON that answers a JSON body. Raises as `get` does."""
        with self._explained(what):
            async with asyncio.timeout(self._timeout_s):
                response = await self._client.post(path, json=body)
        self._check(response, what)
        return _json(response.text, what)

    async def stream(
        self, path: str, body: Body, what: str, take: Callable[[dict[str, Any]], None]
    ) -> None:
        """Post a JSON body and hand on each event of the answer until its [DONE].

        Raises:
            ServerUnreachable, NotAuthorised, TimedOutError, RefusedError, NonsenseError: each
                names `what`. An error that the server reports inside the stream is RefusedError.
        """
        with self._explained(what):
            async with asyncio.timeout(self._timeout_s):
                async with self._client.stream("POST", path, json=body) as response:
                    if not response.is_success:
                        await response.aread()
                    self._check(response, what)
                    async for event in httpx2.EventSource(response):
                        if event.data == "[DONE]":
                            return
                        take(_event(event.data, what))
        raise NonsenseError(f"{what}: the stream was cut", "it ended without [DONE]")

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            untrusted = isinstance(_beneath(error), ssl.SSLCertVerificationError)
            raise ServerUnreachable(
                f"{what}: cannot reach {self.url}",
                _words(error),
                TRUST_HINT if untrusted else _START_HINT,
            ) from error
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise TimedOutError(
                f"{what}: no answer from {self.url} within {self._timeout_s:g} s",
                "the server is slow, overloaded or hanging",
                "allow more with --timeout, or look at the server's log",
            ) from error
        except httpx2.HTTPError as error:
            raise NonsenseError(f"{what}: {self.url} broke off", _words(error)) from error

    def _check(self, response: httpx2.Response, what: str) -> None:
        status = response.status_code
        if status in (401, 403):
            raise NotAuthorised(
                f"{what}: {self.url} wants another API key (HTTP {status})",
                _message(response.text),
                KEY_HINT,
            )
        if not response.is_success:
            raise RefusedError(f"{what}: HTTP {status}", status, _message(response.text))


def new_client(url: str, api_key: str | None, timeout_s: float) -> httpx2.AsyncClient:
    """The HTTP library's client for a server, as all of kvflow's requests want it.

    Raises:
        UsageError: a proxy of the environment is of no use, or its certificates cannot be read.
    """
    parsed = httpx2.URL(url)
    # Loading certificates takes longer than a request; plain HTTP has no use for them.
    verify = trusted() if parsed.scheme == "https" else False
    with _proxy_explained():
        return httpx2.AsyncClient(
            base_url=parsed,
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            timeout=httpx2.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_S)),
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=_IDLE_S),
            verify=verify,
            # A proxy of the environment has no way to this machine's loopback.
            trust_env=not is_loopback(parsed.host),
        )


@contextmanager
def _proxy_explained() -> Iterator[None]:
    """A proxy that the HTTP library does not know how to go through is the person's to change."""
    try:
        yield
    except (ImportError, ValueError) as error:
        for name, url in os.environ.items():
            is_http = url.startswith(("http://", "https://")) or "://" not in url
            if name.lower() in _PROXY_VARIABLES and not is_http:
                raise UsageError(
                    f"the proxy in {name} cannot be used",
                    "it is no HTTP proxy",
                    f"unset {name}, or set NO_PROXY=* to reach servers without a proxy",
                ) from error
        raise


def _parse(url: str) -> httpx2.URL:
    full = url if "://" in url else f"http://{url}"
    try:
        parsed = httpx2.URL(full.rstrip("/").removesuffix("/v1"))
    except httpx2.InvalidURL as error:
        raise UsageError(f"{url!r} is not a URL", str(error)) from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise UsageError(
            f"{url!r} is not the URL of a server", hint="such as http://127.0.0.1:30000"
        )
    return parsed


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NonsenseError(
            f"{what}: the answer is not JSON", f"it begins {text[:80]!r}"
        ) from error


def _event(data: str, what: str) -> dict[str, Any]:
    event = _json(data, what)
    if not isinstance(event, dict):
        raise NonsenseError(f"{what}: an event is no JSON object", f"it begins {data[:80]!r}")
    if event.get("error"):
        error = event["error"]
        code = error.get("code") if isinstance(error, dict) else None
        status = code if isinstance(code, int) else 500
        raise RefusedError(f"{what}: the server gave up (status {status})", status, _message(data))
    return event


def _message(text: str) -> str:
    """The server's own words in the body of an error, at most a line of them."""
    try:
        words = _told(json.loads(text))
    except (ValueError, RecursionError):
        words = text
    return printable(" ".join(words.split())[:300])


def _told(body: Any) -> str:
    for key in ("error", "message", "detail"):
        if isinstance(body, dict) and body.get(key):
            body = body[key]
    return str(body)


def _words(error: Exception) -> str:
    """Why a connection failed: the operating system's reason if there is one beneath."""
    cause = _beneath(error)
    # The numbers of TLS are its own.
    if cause is None or cause.errno is None or isinstance(cause, ssl.SSLError):
        return str(error) or type(error).__name__
    # Names that cannot be resolved have negative numbers, which strerror does not know.
    return os.strerror(cause.errno) if cause.errno > 0 else str(cause.strerror)


def _beneath(error: Exception) -> OSError | None:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno:
            return cause
        cause = cause.__cause__ or cause.__context__
    return None
