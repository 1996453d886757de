"""The servers that tests share, by the name of the fixture that gives them.

They have the same pools, so that one can be compared with the other.
"""

from pathlib import Path

from support.real_server import Kind
from support.recipes import make_recipe

POOL = 1100
"""Tokens of the device pool."""
AT_ONCE = 4
"""Calls that run at the same time on the server with the plugin."""


def server_kinds(folder: Path) -> dict[str, Kind]:
    """Stock SGLang with a host tier, and SGLang with the plugin.

    Args:
        folder: for the recipe that says how long calls are passed over.
    """
    # For as long as the prefix is on its way, so that there is time to look.
    policy = {"max_defer": 1_000_000}
    return {
        "stock_server": Kind(POOL),
        "plugin_server": Kind(
            POOL,
            plugin=True,
            loaded=make_recipe(folder, {"any": {"fixed_tokens": 8}}, name="served", policy=policy),
            flags=("--enable-metrics", "--max-running-requests", str(AT_ONCE)),
            environ={
                # How often SGLang looks whether somebody still waits for an answer in one piece.
                "SGLANG_REQUEST_STATE_WAIT_TIMEOUT": "1",
                # It admits calls whose answers there will be no room for, and retracts them later.
                "SGLANG_INIT_NEW_TOKEN_RATIO": "0.02",
            },
        ),
    }
