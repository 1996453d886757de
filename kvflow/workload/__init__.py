"""The calls of a run, from a recipe and a seed. Pure: no clock, no network, no engine."""

from kvflow.workload.calls import Call, Feed, plan_run
from kvflow.workload.filler import filler_ids, filler_text, fixed_ids
from kvflow.workload.walk import Walk

__all__ = ["Call", "Feed", "Walk", "filler_ids", "filler_text", "fixed_ids", "plan_run"]
