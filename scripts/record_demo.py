"""Record what `kvflow top --demo` replays: the real CPU engine under a real workflow.

    python scripts/record_demo.py [--port 31800]

Takes about four minutes on a quiet machine, of which at most three are recorded. The pool is
smaller than the prompts of all agents and the link is slow, so that something is evicted, brought
back and waited for all the time.
"""

import argparse
import asyncio
import signal
import subprocess
import sys
import time
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory

from kvflow.cli.top_show import DEMO
from kvflow.errors import ExitCode
from kvflow.tui.live import LiveSource, more_follows
from kvflow.tui.record import Recorder
from kvflow.tui.store import Store

KVFLOW = str(Path(sys.executable).with_name("kvflow"))
RECIPE = """
kvflow: 1
name: newsroom
description: Plan, research side by side, analyse, write; the editor may send the text back.
agents:
  planner: {fixed_tokens: 1024, shared_prefix: {name: house, tokens: 256}, output_tokens: 24}
  researcher:
    fixed_tokens: 1280
    shared_prefix: {name: house, tokens: 256}
    output_tokens: 24
    after: planner
    fan_out: 1..3
  analyst:
    fixed_tokens: 768
    shared_prefix: {name: house, tokens: 256}
    output_tokens: 24
    after: researcher
  writer:
    fixed_tokens: 1536
    shared_prefix: {name: house, tokens: 256}
    output_tokens: 48
    after: {any: [analyst, {agent: editor, p: 0.4}]}
  editor:
    fixed_tokens: 512
    shared_prefix: {name: house, tokens: 256}
    output_tokens: 16
    after: writer
repeat: true
workload: {runs: 40, concurrency: 2, dynamic_tokens: 32..160, seed: 7}
"""
LABEL = "newsroom (synthetic prompts) on the CPU engine, emulated link"
SERVE = ("--device", "cpu", "--link-gbps", "0.03", "--mode", "prefetch")
SGLANG = ("--max-total-tokens", "4096")
MOST_S, MOST_BYTES = 180.0, 300_000


async def record(url: str, recipe: Path, target: Path) -> None:
    """Record a server while the workflow runs against it, and a little longer."""
    source, store = LiveSource(url, strict=True), Store()
    workflow = await asyncio.create_subprocess_exec(
        KVFLOW, "run", str(recipe), url, stdout=asyncio.subprocess.DEVNULL
    )
    frames_left = 5
    until = time.monotonic() + MOST_S
    with Recorder(target, LABEL) as recorder:
        async with aclosing(source.frames()) as frames:
            async for frame in frames:
                store.apply(frame)
                if more_follows(frame):
                    continue
                recorder.add(store)
                frames_left -= workflow.returncode is not None
                if frames_left == 0 or time.monotonic() > until:
                    break
    if workflow.returncode is None:
        workflow.terminate()
    elif workflow.returncode:
        raise RuntimeError(f"kvflow run ended with {workflow.returncode}")
    await workflow.wait()


def serve_and_record(recipe: Path, port: str, target: Path) -> None:
    """Serve a recipe, record it, and end the server whatever happens."""
    command = [KVFLOW, "serve", "--recipe", str(recipe), "--port", port, *SERVE, "--", *SGLANG]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            url = server.stdout.readline().strip()
            if not url:
                raise RuntimeError("kvflow serve did not start")
            asyncio.run(record(url, recipe, target))
        finally:
            server.terminate()


def main() -> int:
    """Serve, run, record; exit 1 if the recording is too large to ship."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", default="31800", help="for the server")
    parser.add_argument("--target", type=Path, default=DEMO, help="the recording")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ExitCode.TERMINATED))  # and end the server
    with TemporaryDirectory() as folder:
        recipe = Path(folder) / "newsroom.yaml"
        recipe.write_text(RECIPE)
        chosen.target.unlink(missing_ok=True)
        serve_and_record(recipe, chosen.port, chosen.target)
    size = chosen.target.stat().st_size
    print(f"{chosen.target}: {size:,} bytes", file=sys.stderr)
    return int(size > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
