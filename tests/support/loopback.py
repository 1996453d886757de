"""What the HTTP servers of tests have in common: loopback, a free port, answers in JSON."""

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANY_PORT = ("127.0.0.1", 0)


class Handler(BaseHTTPRequestHandler):
    """Answers whole bodies. Tests look at what was asked, not at a log."""

    def log_message(self, *args: object) -> None:
        """Nothing."""

    def reply(
        self, content: object, status: int = 200, content_type: str = "application/json"
    ) -> None:
        """Answer with bytes, with a text, or with anything else as JSON."""
        if not isinstance(content, bytes):
            text = content if isinstance(content, str) else json.dumps(content)
            content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextlib.contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[str]:
    """Serve at the returned URL for as long as the context lasts."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
