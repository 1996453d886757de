"""The eviction order of a tier: which leaf goes first, kept by events and never rebuilt."""

from kvflow.order.heap import EvictionOrder
from kvflow.order.reserved import ReservedOrder

__all__ = ["EvictionOrder", "ReservedOrder"]
