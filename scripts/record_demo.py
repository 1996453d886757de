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

from kvflow.cli.top import DEMO
from kvflow.errors import ExitCode
from kvflow.tui.live import LiveSource, more_follows
from kvflow.tui.record import Recorder
from kvflow.tui.store import Store

KVFLOW = str(Path(sys.executable).with_name("kvflow"))
RECIPE = "peer"
LABEL = f"{RECIPE} on the CPU engine, emulated link"
SERVE = ("--device", "cpu", "--link-gbps", "0.03", "--mode", "prefetch")
SGLANG = ("--max-total-tokens", "5120")
RUN = ("--runs", "12", "--concurrency", "3")
MOST_S, MOST_BYTES = 180.0, 300_000


async def record(url: str, target: Path) -> None:
    """Record a server while the workflow runs against it, and a little longer."""
    source, store = LiveSource(url, strict=True), Store()
    workflow = await asyncio.create_subprocess_exec(
        KVFLOW, "run", RECIPE, url, *RUN, stdout=asyncio.subprocess.DEVNULL
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


def main() -> int:
    """Serve, run, record; exit 1 if the recording is too large to ship."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", default="31800", help="for the server")
    parser.add_argument("--target", type=Path, default=DEMO, help="the recording")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ExitCode.TERMINATED))  # and end the server
    command = [KVFLOW, "serve", "--recipe", RECIPE, "--port", chosen.port, *SERVE, "--", *SGLANG]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            url = server.stdout.readline().strip()
            if url:
                asyncio.run(record(url, chosen.target))
        finally:
            server.terminate()
    if not url:
        print("kvflow serve did not start", file=sys.stderr)
        return 1
    size = chosen.target.stat().st_size
    print(f"{chosen.target}: {size:,} bytes", file=sys.stderr)
    return int(size > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
