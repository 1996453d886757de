"""Whether a server answers, asked in the background so that the asker stays responsive."""

import http.client
import ssl
import threading
from urllib.parse import urlsplit

_PAUSE_S = 0.5
# SGLang gives up on its own check after 20 s (sglang/srt/entrypoints/http_server.py,
# HEALTH_CHECK_TIMEOUT).
_TIMEOUT_S = 30.0


class HealthProbe:
    """Asks a server for its health until it answers well.

    SGLang answers 503 until its warm-up is done; then it has one token generated, all the way
    through tokenizer, scheduler and back, and answers 200 (`/health_generate`, which wants no key).
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._done = threading.Event()
        self._healthy = False
        threading.Thread(target=self._ask, name="kvflow-health", daemon=True).start()

    @property
    def healthy(self) -> bool:
        """Whether the server has answered well."""
        return self._healthy

    def close(self) -> None:
        """Ask no more; a question that is under way is left to itself."""
        self._done.set()

    def _ask(self) -> None:
        while not self._done.is_set():
            if _answers(self._url):
                self._healthy = True
                return
            self._done.wait(_PAUSE_S)


def _answers(url: str) -> bool:
    """Whether SGLang generates, without a proxy in between."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        # It is our own child that is asked, and its certificate names another host.
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_S, context=context)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", "/health_generate")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
