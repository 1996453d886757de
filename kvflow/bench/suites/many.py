"""Many workflows at once, and workflows beside traffic that says nothing about itself."""

from kvflow.bench.setting import PaperFigure, Setting, Suite
from kvflow.bench.suites.scale import Scale
from kvflow.bench.suites.workflows import chains, sequence

_LINK = 0.1
_LENGTHS = 256
_MOST_TASKS = 25  # of ten agents each, of the 256 that a recipe may have
_QWEN, _LLAMA = 0.34, 0.68
_CASES = (
    (1024, 10, _QWEN, {"lru": 1.15}),
    (512, 20, _QWEN, {"lru": 1.15}),
    (1024, 64, _LLAMA, {"lru": 1.25, "hicache": 2.19}),
    (512, 128, _LLAMA, {"lru": 1.0}),
)


def concurrent(scale: Scale) -> Suite:
    """Independent workflows of ten agents each, none sharing a prompt with another."""
    settings = []
    for fixed, tasks, pool, speedups in _CASES:
        loaded = chains(
            f"concurrent-{fixed}-{tasks}",
            min(tasks, _MOST_TASKS),
            scale.prompt_tokens(fixed),
            scale.prompt_tokens(_LENGTHS),
            # Decoding many at once costs a CPU about as much more as it costs a GPU.
            scale.prompt_tokens(_LENGTHS),
        )
        model = "Qwen2.5-32B" if pool == _QWEN else "Llama-3.1-8B"
        source = f"{model} on an H100, {tasks} tasks (here {min(tasks, _MOST_TASKS)})"
        settings.append(
            Setting(
                name=f"{fixed}/{tasks}-Task",
                served=loaded,
                driven=loaded,
                pool_ratio=pool,
                link_ratio=scale.link(_LINK),
                runs=1,
                concurrency=1,
                paper=PaperFigure(speedups, source),
            )
        )
    return Suite("concurrent", "Many workflows at once, each with prompts of its own.", settings)


def mixed(scale: Scale) -> Suite:
    """A workflow alone, and beside plain chats."""
    loaded = sequence(
        "mixed", scale.prompt_tokens(8192), scale.prompt_tokens(256), scale.output_tokens(32)
    )
    settings = [
        Setting(
            name=f"beside {lanes} plain chats" if lanes else "alone",
            served=loaded,
            driven=loaded,
            pool_ratio=0.6,
            link_ratio=scale.link(0.5),
            runs=1,
            concurrency=1,
            plain_lanes=lanes,
        )
        for lanes in (0, 2)
    ]
    return Suite("mixed", "A workflow beside chats without a tag.", settings)
