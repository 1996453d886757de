"""What an application imports: runs, tags for their calls, and a driver that walks a workflow."""

from typing import TYPE_CHECKING, Any

from kvflow.client.tagging import tag

if TYPE_CHECKING:
    from kvflow.client.run import Run

__all__ = ["Run", "tag"]


def __getattr__(name: str) -> Any:
    """`Run` when it is asked for: who only tags calls does without an HTTP library."""
    if name == "Run":
        from kvflow.client.run import Run

        return Run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
