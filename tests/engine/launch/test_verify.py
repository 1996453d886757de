import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from kvflow.engine.launch import Options, build, verify
from kvflow.errors import KvflowError

LOG = Path("sglang.log")


@contextmanager
def answering(status: int, body: str) -> Iterator[tuple[int, list[str | None]]]:
    keys: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            keys.append(self.headers.get("Authorization"))
            self.send_response(status if self.path == "/kvflow/policy" else 404)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port, keys
        finally:
            server.shutdown()
            thread.join()


def launch(port: int, **more):
    options = Options(device="cpu", port=port, with_plugin=True, mode="evict")
    return build(replace(options, **more), None, {})


def test_plugin_in_the_mode_that_was_asked_for_is_fine():
    with answering(200, json.dumps({"configured": "evict"})) as (port, _):
        verify.plugin(launch(port), LOG)


def test_mode_that_somebody_has_put_to_work_since_is_fine():
    with answering(200, json.dumps({"mode": "off", "configured": "evict"})) as (port, _):
        verify.plugin(launch(port), LOG)


@pytest.mark.parametrize(
    ("status", "body"),
    [(404, "not found"), (200, json.dumps({"configured": "off"})), (200, "<html>"), (200, "[]")],
)
def test_server_without_the_plugin_at_work_is_told_with_where_to_look(status, body):
    with answering(status, body) as (port, _), pytest.raises(KvflowError) as error:
        verify.plugin(launch(port), LOG)
    assert "without kvflow's plugin in mode evict" in error.value.what
    assert str(LOG) in error.value.hint


def test_server_that_wants_our_key_gets_it():
    with answering(200, json.dumps({"configured": "evict"})) as (port, keys):
        verify.plugin(launch(port, api_key="s3cret"), LOG)
    assert keys == ["Bearer s3cret"]


def test_server_that_wants_somebody_elses_key_is_left_alone():
    with answering(401, "no") as (port, _):
        verify.plugin(launch(port), LOG)


def test_server_whose_admin_key_alone_opens_our_routes_is_left_alone():
    with answering(401, "no") as (port, _):
        verify.plugin(launch(port, api_key="s3cret"), LOG)


def test_stock_server_is_asked_nothing():
    with answering(500, "no") as (port, keys):
        verify.plugin(launch(port, with_plugin=False, mode="off"), LOG)
    assert keys == []
