"""A stand-in for `python -m sglang.launch_server`: its log lines, processes, answers and ends.

`install` puts it where Python finds it as SGLang. What it does is chosen by FAKE_SGLANG:
    serve       comes up, serves, ends when asked to (the default)
    hang        never becomes healthy
    mute        never listens
    stubborn    serves, and does not listen to SIGTERM
    crash       serves, and is killed as soon as somebody asks for /crash
    fail        writes FAKE_SGLANG_LOG to its log and exits with FAKE_SGLANG_EXIT
The processes that it has are listed in FAKE_SGLANG_PIDS.
"""

import argparse
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

VERSION = "0.5.23"

_LINES_BEFORE = (
    "[2026-01-01 00:00:00] server_args={'model_path': 'm', 'api_key': 'sesame'}",
    "[2026-01-01 00:00:01] Load weight begin. avail mem=20.00 GB",
    "[2026-01-01 00:00:02] Load weight end. elapsed=0.10 s, type=LlamaForCausalLM",
    "[2026-01-01 00:00:03] Capture target decode CUDA graph begin. This can take a while",
    "INFO:     Started server process [1]",
)
_LINES_AFTER = ("[2026-01-01 00:00:05] The server is fired up and ready to roll!",)

# A worker that has not come as far as asking to be killed with its parent, and one whose parent
# has already gone: what a spawned SGLang scheduler and a compiler's helper look like.
_WORKER = "import time; time.sleep(600)"
_ORPHAN_MAKER = (
    "import subprocess, sys;"
    "null = subprocess.DEVNULL;"
    f"command = [sys.executable, '-c', {_WORKER!r}];"
    "print(subprocess.Popen(command, stdout=null, stderr=null).pid)"
)


def install(folder: Path, version: str = VERSION) -> Path:
    """Make a folder that, on PYTHONPATH, is an installed SGLang."""
    package, info = folder / "sglang", folder / f"sglang-{version}.dist-info"
    for made in (package, info):
        made.mkdir(parents=True)
    (package / "__init__.py").touch()
    shutil.copyfile(__file__, package / "launch_server.py")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: sglang\nVersion: {version}\n")
    return folder


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/crash":
            os.kill(os.getpid(), signal.SIGKILL)
        healthy = os.environ.get("FAKE_SGLANG") != "hang"
        self.send_response(200 if healthy else 503)
        self.end_headers()
        answer: dict[str, object] = {"argv": sys.argv[1:], "data": [{"id": "m"}]}
        if self.path == "/kvflow/policy":
            answer["configured"] = json.loads(os.environ["KVFLOW_CONFIG"])["mode"]
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None:
        """Be quiet."""


def _log(lines: tuple[str, ...]) -> None:
    for line in lines:
        sys.stderr.write(f"{line}\n")


def _spawn_workers() -> None:
    worker = subprocess.Popen([sys.executable, "-c", _WORKER])
    maker = subprocess.run(
        [sys.executable, "-c", _ORPHAN_MAKER], capture_output=True, text=True, check=True
    )
    pids = [os.getpid(), worker.pid, int(maker.stdout)]
    target = Path(os.environ["FAKE_SGLANG_PIDS"])
    aside = target.with_suffix(f".{os.getpid()}")  # servers side by side share the target
    aside.write_text(json.dumps(pids))
    aside.rename(target)


def _options() -> argparse.Namespace:
    """What is needed of the flags; --bogus is refused as SGLang refuses what it does not know."""
    parser = argparse.ArgumentParser(prog="sglang serve")
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    options, others = parser.parse_known_args()
    if "--bogus" in others:
        parser.error(f"unrecognized arguments: {' '.join(others[others.index('--bogus') :])}")
    return options


def main() -> int:
    options, behaviour = _options(), os.environ.get("FAKE_SGLANG", "serve")
    asked_to_end = threading.Event()
    if behaviour == "stubborn":
        signal.signal(signal.SIGTERM, lambda *_: _log(("I am busy",)))
    else:
        signal.signal(signal.SIGTERM, lambda *_: asked_to_end.set())
    _spawn_workers()
    if behaviour == "fail":
        sys.stderr.write(os.environ["FAKE_SGLANG_LOG"] + "\n")
        return int(os.environ["FAKE_SGLANG_EXIT"])
    _log(_LINES_BEFORE)
    if behaviour == "mute":
        signal.pause()
    server = http.server.ThreadingHTTPServer((options.host, options.port), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    _log(_LINES_AFTER)
    while not asked_to_end.wait(0.05):
        pass
    _log(("Gracefully exiting... Remaining number of requests 0.",))
    server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
