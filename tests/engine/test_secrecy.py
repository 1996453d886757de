"""Nothing of a prompt leaves the scheduler for people to look at."""

import json
import logging
from typing import Any

import msgspec
import pytest
from support.prefixes import evict_all, scheduler
from support.tags import by

from kvflow.engine import metrics_sample, snapshot

pytestmark = pytest.mark.engine

SECRETS = range(700_000, 700_040)
"""Token ids that nothing else is counted by."""


def numbers(told: Any) -> set[Any]:
    """Everything that stands in a JSON document."""
    if isinstance(told, dict):
        return {*told, *(found for part in told.values() for found in numbers(part))}
    if isinstance(told, list):
        return {found for part in told for found in numbers(part)}
    return {told}


def test_frames_metrics_and_logs_hold_no_token_of_a_prompt(caplog):
    caplog.set_level(logging.DEBUG)
    mini = scheduler(mode="prefetch")
    for call in range(4):
        mini.serve([*SECRETS, call], by("a", 30, steps={"a": 2}))
    evict_all(mini.cache)
    waiting = mini.arrive([*SECRETS, 9], by("a", 30, steps={"a": 1}))
    told = [
        snapshot.take(mini, snapshot.MOST_NODES),
        snapshot.follow(mini, 0),
        metrics_sample.take(mini),
    ]
    mini.abort(waiting)
    documents = json.loads(msgspec.json.encode(told))
    assert documents[0]["nodes"]
    assert not numbers(documents) & set(SECRETS)
    assert not any(str(secret) in caplog.text for secret in SECRETS)
