"""What an application imports: runs, tags for their calls, and a driver that walks a workflow."""

from kvflow.client.run import Run
from kvflow.client.tagging import tag

__all__ = ["Run", "tag"]
