"""What wrong hints cost: a share of the calls goes to another agent than was foretold."""

from kvflow.bench.setting import Setting, Suite
from kvflow.bench.suites.scale import Scale
from kvflow.bench.suites.workflows import sequence, wander

_SHARES = (0.0, 0.25, 0.5, 1.0)


def wrong_hints(scale: Scale) -> Suite:
    """Ten agents in a row are what kvflow is told of; a share of the calls leaves the row."""
    row = sequence(
        "wrong-hints", scale.prompt_tokens(8192), scale.prompt_tokens(256), scale.output_tokens(32)
    )
    settings = [
        Setting(
            name=f"wrong in {share:.0%}",
            served=row,
            driven=wander(row, share),
            pool_ratio=0.43,
            link_ratio=scale.link(0.5),
            runs=2,
            concurrency=1,
        )
        for share in _SHARES
    ]
    return Suite("wrong-hints", "Calls go elsewhere than was foretold.", settings)
