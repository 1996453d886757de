"""What can be known to fail before SGLang is started, which takes half a minute to say so."""

import errno
import logging
import os
import socket
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import psutil

from kvflow.engine import compat
from kvflow.engine.launch import demo
from kvflow.engine.launch.command import Launch
from kvflow.engine.launch.device import gpu_visible
from kvflow.engine.launch.environment import CPU_PLATFORM
from kvflow.engine.processes import listeners
from kvflow.engine.state import running_servers
from kvflow.errors import KvflowError, MissingPart, UsageError

_log = logging.getLogger(__name__)


def before_start(launch: Launch, environ: Mapping[str, str]) -> None:
    """Find what would make a start fail.

    Raises:
        KvflowError: the first thing found, with what to do about it.
    """
    sglang_version(environ)
    platform(launch, environ)
    if launch.device == "cuda" and not gpu_visible(environ):
        raise MissingPart(
            "there is no NVIDIA GPU here",
            "neither the driver nor nvidia-smi shows one to this process",
            "kvflow serve --device cpu",
        )
    if not demo.missing(launch):
        model_folder(launch.model)
    port_free(launch.host, launch.port)


def sglang_version(environ: Mapping[str, str] = os.environ) -> None:
    """SGLang is installed, and it is the one that kvflow is made for.

    Raises:
        MissingPart: it is not. With KVFLOW_COMPAT=warn another one is only warned of.
    """
    hint = "pip install 'kvflow[engine]'"
    try:
        found = metadata.version("sglang")
    except metadata.PackageNotFoundError:
        why = "it is an optional part: it brings torch and about 10 GB with it"
        raise MissingPart("SGLang is not installed", why, hint) from None
    if found == compat.SUPPORTED:
        return
    what = f"SGLang {found} is installed"
    why = f"this version of kvflow is made for SGLang {compat.SUPPORTED}, to the letter"
    if not compat.tries_all_the_same(environ):
        raise MissingPart(what, why, f"{hint}; KVFLOW_COMPAT=warn tries this one")
    _log.warning("warning: %s, and %s", what, why)


def platform(launch: Launch, environ: Mapping[str, str]) -> None:
    """No other platform plugin is selected.

    SGLang drops every distribution whose platform is not the selected one, kvflow with it
    (sglang/srt/plugins/__init__.py, `_get_excluded_dists`).

    Raises:
        UsageError: one is.
    """
    selected = environ.get("SGLANG_PLATFORM", "")
    if selected in ("", launch.env.get("SGLANG_PLATFORM")):
        return
    if selected == CPU_PLATFORM:
        why = f"that is kvflow's CPU engine, and the device is {launch.device}"
    else:
        why = "SGLang leaves out every package that brings another platform, kvflow too"
    raise UsageError(f"SGLANG_PLATFORM is set to {selected}", why, "unset SGLANG_PLATFORM")


def model_folder(model: str) -> None:
    """A model that is written as a path is there.

    Raises:
        UsageError: it is not.
    """
    if model.startswith(("/", "./", "../", "~")) and not Path(model).expanduser().exists():
        raise UsageError(f"there is no model {model}", "no such folder exists", "check the path")


def port_free(host: str, port: int) -> None:
    """Nobody listens where SGLang is to listen.

    Raises:
        KvflowError: somebody does, or the address is not one of this machine.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            # As servers do: a port whose last connections are still closing is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise KvflowError(f"port {port} is in use", *_holder(port)) from None
        why = error.strerror or str(error)
        hint = "--host 127.0.0.1 serves this machine only"
        raise UsageError(f"cannot bind to {host}:{port}", why, hint) from None


def _holder(port: int) -> tuple[str, str]:
    """Why a port is in use, and what to do."""
    elsewhere = f"take another: --port {port + 1}"
    for server in running_servers():
        if server.url.endswith(f":{port}"):
            serves = server.recipe or server.model
            return f"kvflow serves {serves} there (pid {server.pid})", (
                f"use it at {server.url}, end it with kill {server.pid}, or {elsewhere}"
            )
    pid = next((one.pid for one in listeners(port)), None)
    if pid is None:
        return "a process of another user listens there", elsewhere
    try:
        name = psutil.Process(pid).name()
    except psutil.Error:
        name = "a process"
    return f"{name} (pid {pid}) listens there", f"end it with kill {pid}, or {elsewhere}"
