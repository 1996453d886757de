"""Tags of calls in tests: one application, one workflow."""

from kvflow.client.tagging import CustomParams, tag


def by(
    agent: str,
    fixed: int | None = None,
    *,
    run: str = "run",
    client: str = "app",
    steps: dict[str, int] | None = None,
    final: bool = False,
) -> CustomParams:
    """A call by an agent, with so many tokens of fixed prefix and, if given, everybody's steps."""
    return tag(client, "work", run, agent, fixed, final, steps)
