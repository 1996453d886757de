"""A server as one JSON document: `kvflow top --json` and each line of `--watch`. Additive only."""

from typing import Any, Final

import msgspec

from kvflow import __version__
from kvflow.telemetry.model import Sample
from kvflow.tui.explain import why_evicted, why_kept
from kvflow.tui.forecast import Forecast, Tier, tier_of
from kvflow.tui.history import hit_shares
from kvflow.tui.rows import Rows
from kvflow.tui.source import Status
from kvflow.tui.store import Store

SCHEMA_VERSION: Final = 1


def document(
    store: Store,
    rows: Rows,
    status: Status,
    label: str,
    machine: Sample | None,
    most: int | None,
) -> dict[str, Any]:
    """Everything that is known at one moment.

    Args:
        store: what is known; must have a frame.
        rows: of the tree, all that could be shown.
        status: of the source.
        label: of the source.
        machine: that the console runs on, if the server does too.
        most: nodes that are listed; None for all.

    Returns:
        `frame` as the server sent it, without its part of the tree; `nodes` in the order of
        `rows`, each with `explained`; `hits` since the server's start; `rates` over the last
        interval.
    """
    frame = store.frame
    assert frame is not None
    told = msgspec.to_builtins(frame)
    del told["nodes"], told["gone"], told["delta_since"], told["nodes_left_out"]
    told["evictions"] = [
        {**one, "explained": why_evicted(store, record).verdict}
        for one, record in zip(told["evictions"], frame.evictions, strict=True)
    ]
    shares = hit_shares(frame.counters)
    point = store.history.points[-1]
    return {
        "schema_version": SCHEMA_VERSION,
        "kvflow": __version__,
        "source": {
            "name": label,
            "link": status.link,
            "label": status.label,
            "why": status.why,
            "hint": status.hint,
        },
        "frame": told,
        "hits": dict(zip(("device", "host", "computed"), shares, strict=True)) if shares else None,
        "rates": point._asdict(),
        "tree": {
            "known": len(store.tree.nodes),
            "complete": store.tree.complete,
            "matching": len(rows),
        },
        "nodes": _nodes(store, rows, len(rows) if most is None else most),
        "machine": machine,
    }


def _nodes(store: Store, rows: Rows, most: int) -> list[dict[str, Any]]:
    spare = store.frame.untagged_spare if store.frame else None
    forecasts = {tier: Forecast(store.tree, tier, spare) for tier in Tier}
    listed = []
    for row in rows[:most]:
        explained = None
        if not row.ghost:
            explained = why_kept(store, row.node.id, forecasts[tier_of(row.node)])
        listed.append({**msgspec.to_builtins(row.node), "level": row.level, "explained": explained})
    return listed
