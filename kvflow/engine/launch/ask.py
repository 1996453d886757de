"""Asking our own child: plain GETs, without a proxy in between."""

import http.client
import ssl
from typing import NamedTuple
from urllib.parse import urlsplit

# SGLang gives up on its own health check after 20 s (sglang/srt/entrypoints/http_server.py,
# HEALTH_CHECK_TIMEOUT).
_TIMEOUT_S = 30.0


class Reply(NamedTuple):
    """What came back."""

    status: int
    body: bytes


def get(url: str, path: str, key: str | None = None) -> Reply | None:
    """GET a path of a server; None if nothing answers as HTTP.

    Args:
        url: of the server.
        path: begins with a slash.
        key: sent as a bearer token.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        # Its certificate names another host than the one it is asked under.
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_S, context=context)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)
    try:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return Reply(response.status, response.read())
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
