"""Suites: several settings that belong together, most of them after an experiment of the paper."""

from collections.abc import Callable, Mapping

from kvflow.bench.setting import Suite
from kvflow.bench.suites.hints import wrong_hints
from kvflow.bench.suites.many import concurrent, mixed
from kvflow.bench.suites.paper import paper_peer, paper_single
from kvflow.bench.suites.scale import SCALES, Scale

SUITES: Mapping[str, Callable[[Scale], Suite]] = {
    "paper-single": paper_single,
    "paper-peer": paper_peer,
    "concurrent": concurrent,
    "mixed": mixed,
    "wrong-hints": wrong_hints,
}
"""Each by its name; made for a scale."""

__all__ = ["SCALES", "SUITES", "Scale"]
