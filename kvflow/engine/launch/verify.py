"""Whether kvflow's plugin is really at work in a server that is up.

SGLang only logs what fails in a plugin. The factory stops a scheduler that is not whole; what is
left is an HTTP process without kvflow's routes, or a scheduler that was not told our settings.
Somebody may have put another mode to work already.
"""

import json
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path

from kvflow.engine.launch import ask
from kvflow.engine.launch.command import Launch
from kvflow.errors import KvflowError


def plugin(launch: Launch, log: Path) -> None:
    """Ask a healthy server for its policy; nothing to ask of one that was started without kvflow.

    A server that wants another key than ours is left alone. SGLang answers 401 where its admin key
    alone opens kvflow's routes, which are there then.

    Args:
        launch: what was started.
        log: SGLang's log, for the error.

    Raises:
        KvflowError: the plugin does not answer, or was started in another mode.
    """
    if "KVFLOW_CONFIG" not in launch.env:
        return
    reply = ask.get(launch.url, "/kvflow/policy", _key(launch.files))
    if reply is not None and reply.status == HTTPStatus.UNAUTHORIZED:
        return
    mode = _mode(reply)
    if mode != launch.mode:
        found = f"it answers {mode!r}" if mode else "its routes do not answer"
        raise KvflowError(
            f"SGLang is up without kvflow's plugin in mode {launch.mode}",
            found,
            f"see {log} for lines that begin with kvflow",
        )


def _mode(reply: ask.Reply | None) -> str:
    if reply is None or reply.status != HTTPStatus.OK:
        return ""
    try:
        return str(json.loads(reply.body).get("configured", ""))
    except (ValueError, AttributeError):
        return ""


def _key(files: Mapping[Path, str]) -> str | None:
    """The key that the server wants, if it was started with one of ours."""
    for path, content in files.items():
        if path.name.endswith("key.yaml"):
            return str(json.loads(content)["api-key"])
    return None
