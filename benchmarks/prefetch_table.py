"""What each part of kvflow buys a cycle of ten agents, and how far it is from the limit: one table.

    python benchmarks/prefetch_table.py --out docs/results [--only-print]

Runs `kvflow bench sequential-10` for two pools, three links and two lengths of answers, six arms
in turns, five repeats of one run each: about two hours on 2 cores, one folder for each pool and
length. What is there already is not measured again. The table goes to stdout, as Markdown.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

POOLS, LINKS, OUTPUTS = (0.43, 0.86), (0.1, 0.5, 1.0), (16, 64)
ARMS = ("lru", "hicache", "limit", "evict", "prefetch", "full")
KVFLOW = str(Path(sys.executable).with_name("kvflow"))
BASELINE, LIMIT = "hicache", "limit"
COMPARED = (
    ("prefetch", "lru"), (LIMIT, BASELINE), ("prefetch", BASELINE), ("full", BASELINE),
    ("prefetch", LIMIT), ("full", LIMIT),
)  # fmt: skip


def measure(folder: Path, pool: float, output: int) -> None:
    """One `kvflow bench` with all links, on the same servers."""
    links = ",".join(f"{link:g}" for link in LINKS)
    subprocess.run(
        [
            *(KVFLOW, "bench", "sequential-10"),
            *("--pool-ratio", f"{pool:g}", "--link-ratio", links, "--output", str(output)),
            *("--runs", "1", "--repeats", "5", "--arms", ",".join(ARMS), "--out", str(folder)),
        ],
        check=True,
    )


def settings(folder: Path) -> list[dict[str, Any]]:
    """The documents of a bench, one for each setting."""
    document = json.loads((folder / "summary.json").read_text())
    found: list[dict[str, Any]] = document.get("settings", [document])
    return found


def row(one: dict[str, Any], output: int) -> list[str]:
    """Of one setting: whole runs above first tokens."""
    setup, arms, speedups = one["setup"], one["arms"], one["speedups"]
    known = [arms.get(arm) for arm in ARMS]  # not those that failed
    runs = [f"{arm['run_s']['mean']:.2f}" if arm else "-" for arm in known]
    firsts = [f"{arm['metrics']['mean_ttft_ms']:.0f}" if arm else "-" for arm in known]
    ratios = [
        [claimed(found.get(f"{one}/{other}")) for one, other in COMPARED]
        for found in (speedups, speedups["ttft"])
    ]
    what = [f"{setup['pool_ratio']:g}", f"{setup['link_ratio']:g}", str(output)]
    return [
        cells(*what, "run s", *runs, *ratios[0]),
        cells("", "", "", "TTFT ms", *firsts, *ratios[1]),
    ]


def claimed(figure: dict[str, Any] | None) -> str:
    """A ratio and its interval; in brackets where no difference could be shown."""
    if figure is None or figure["mean"] is None:
        return "-"
    text = f"{figure['mean']:.2f} ({figure['low']:.2f} to {figure['high']:.2f})"
    return f"[{text}]" if figure["claim"] == "no difference" else text


def cells(*texts: str) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(texts)} |"


def main() -> None:
    """Measure what is missing, and print what there is."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only-print", action="store_true")
    options = parser.parse_args()
    heading = ["pool", "link", "output", "", *ARMS, *(f"{one}/{other}" for one, other in COMPARED)]
    lines = [cells(*heading), cells(*["---"] * len(heading))]
    for pool in POOLS:
        for output in OUTPUTS:
            folder = options.out / f"pool-{pool:g}-output-{output}"
            if not (folder / "summary.json").exists() and not options.only_print:
                measure(folder, pool, output)
            if (folder / "summary.json").exists():
                lines += [text for one in settings(folder) for text in row(one, output)]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
