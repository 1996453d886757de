"""The experiments of the KVFlow paper with one workflow, and with PEER.

Its machines come to these pressures: Qwen2.5-32B on an H100 has a pool for 0.86 of ten prefixes of
4096 tokens, 0.43 of 8192, and loads one in about a tenth of the time that computing it takes;
Llama-3.1-8B on an A10G has 0.44 of 8192 and a slow link, 0.28. Figures are of the paper's text, or
read off its bars where the text has none.
"""

from kvflow.bench.setting import PaperFigure, Setting, Suite
from kvflow.bench.shape import Shape, reshape
from kvflow.bench.suites.scale import Scale
from kvflow.bench.suites.workflows import sequence, stages
from kvflow.recipe.load import find, load
from kvflow.recipe.ranges import Range

_FAST, _SLOW = 0.1, 0.28
_H100 = "Qwen2.5-32B on an H100, HiCache of SGLang 0.4.4"
_A10G = "Llama-3.1-8B on an A10G, HiCache of SGLang 0.4.4 (first version of the paper)"


def paper_single(scale: Scale) -> Suite:
    """One workflow of ten agents, or of ten stages with two agents each."""
    settings = (  # those of equal pools next to each other, to share servers
        _single(
            scale, 4096, 32, 1, 0.86, _FAST, PaperFigure({"hicache": 1.24, "lru": 1.42}, _H100)
        ),
        _single(scale, 4096, 256, 1, 0.86, _FAST, None),
        _single(
            scale, 8192, 32, 1, 0.43, _FAST,
            PaperFigure({"hicache": 1.75, "lru": 1.4}, f"{_H100}; read off bars"),
        ),
        _single(scale, 8192, 256, 1, 0.43, _FAST, None),
        _single(
            scale, 8192, 32, 1, 0.44, _SLOW, PaperFigure({"hicache": 1.83, "lru": 2.91}, _A10G)
        ),
        _single(
            scale, 4096, 32, 2, 0.57, _FAST,
            PaperFigure({"hicache": 1.17, "lru": 1.35}, f"{_H100}; read off bars"),
        ),
        _single(
            scale, 8192, 32, 2, 0.29, _FAST,
            PaperFigure({"hicache": 1.9, "lru": 1.5}, f"{_H100}; read off bars"),
        ),
    )  # fmt: skip
    return Suite("paper-single", "One workflow of ten agents, as in the paper.", settings)


def _single(
    scale: Scale,
    fixed: int,
    lengths: int,
    branches: int,
    pool: float,
    link: float,
    paper: PaperFigure | None,
) -> Setting:
    build = sequence if branches == 1 else stages
    loaded = build(
        f"paper-single-b{branches}",
        scale.prompt_tokens(fixed),
        scale.prompt_tokens(lengths),
        scale.output_tokens(lengths),
    )
    slow = ", slow link" if link == _SLOW else ""
    return Setting(
        name=f"{fixed}/{lengths}/{lengths} b={branches}{slow}",
        served=loaded,
        driven=loaded,
        pool_ratio=pool,
        link_ratio=scale.link(link),
        runs=1,
        concurrency=1,
        paper=paper,
    )


def paper_peer(scale: Scale) -> Suite:
    """The shipped PEER workflow, several runs at once; its prompts are as small as published."""
    loaded = load(find("peer"))
    if scale.name != "full":
        longest = max(spec.output_tokens for spec in loaded.recipe.agents.values())
        # Prompt files keep their length: it is what the experiment is about.
        dynamic = Range(*(scale.prompt_tokens(tokens) for tokens in (64, 256)))
        output = scale.output_tokens(longest) // scale.prompt
        loaded = reshape(loaded, Shape(dynamic=dynamic, output=output))
    settings = [
        Setting(
            name=f"peer, {runs} at once",
            served=loaded,
            driven=loaded,
            pool_ratio=0.86,
            link_ratio=scale.link(_FAST),
            runs=runs,
            concurrency=runs,
            paper=PaperFigure(
                {"hicache": 1.08, "lru": 1.12},
                "16 and 128 tasks with prompts of their own, on an H100; the most of them",
            ),
        )
        for runs in (1, 3)
    ]
    return Suite("paper-peer", "PEER: prompts of a few hundred tokens.", settings)
