"""Whether a server answers, asked in the background so that the asker stays responsive."""

import threading
from http import HTTPStatus

from kvflow.engine.launch import ask

_PAUSE_S = 0.5


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
    reply = ask.get(url, "/health_generate")
    return reply is not None and reply.status == HTTPStatus.OK
