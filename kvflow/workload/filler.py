"""Stand-ins for prompts and outputs: seeded token ids, and seeded text."""

from kvflow.recipe.model import Recipe
from kvflow.workload.chance import Key, generator

_TEXT = """
amber anchor answer archive arrow balance barrel basket beacon bridge bronze budget canal candle
canvas carbon castle cedar chapter circle cloud coast copper corner cotton current dawn delta
desert diary distance draft drift early east echo edge engine estate evening fabric factor field
figure filter flame forest fossil frame garden gentle glacier gold grain granite harbour harvest
hollow horizon index island ivory jacket journal kettle ladder lantern ledger letter level linen
lumber marble margin market meadow measure metal mirror morning mountain narrow needle north
notice number ocean olive orbit orchard order paper pattern pebble pencil planet pocket portrait
prairie quartz quiet record region report ribbon ridge river rocket saddle sample season shadow
signal silver simple sketch source south spring square station steady stone summer supply table
temple theory thread timber tower travel tunnel valley velvet village violet volume walnut water
west willow winter yellow
"""
_WORDS = _TEXT.split()
_SENTENCE = 12  # words


def fixed_ids(recipe: Recipe, agent: str, vocabulary: range) -> list[int]:
    """The ids that stand in for the prompt of an agent which has `fixed_tokens` and no prompt.

    They depend on the names in the recipe alone: the same in every run, bench arm and seed. Agents
    that name the same shared_prefix begin alike.

    Args:
        recipe: where the agent is described.
        agent: its name.
        vocabulary: ids to take from; without the model's special tokens.

    Raises:
        ValueError: the agent has a prompt instead.
    """
    spec = recipe.agents[agent]
    if spec.fixed_tokens is None:
        raise ValueError(f"agent {agent!r} has a prompt file, not fixed_tokens")
    shared: list[int] = []
    if spec.shared_prefix is not None:
        key = (recipe.name, "shared prefix", spec.shared_prefix.name)
        shared = filler_ids(spec.shared_prefix.tokens, vocabulary, *key)
    own = filler_ids(spec.fixed_tokens - len(shared), vocabulary, recipe.name, "agent", agent)
    return shared + own


def filler_ids(count: int, vocabulary: range, *key: Key) -> list[int]:
    """Seeded token ids: equal keys give equal ids, and a longer draw begins with a shorter one."""
    if not vocabulary:
        raise ValueError("the vocabulary to draw token ids from is empty")
    random = generator(*key).random
    size = len(vocabulary)
    return [vocabulary[int(random() * size)] for _ in range(count)]


def filler_text(words: int, *key: Key) -> str:
    """Seeded text of so many ordinary words, in sentences; equal keys give equal text."""
    random = generator(*key).random
    chosen = [_WORDS[int(random() * len(_WORDS))] for _ in range(words)]
    sentences = [chosen[at : at + _SENTENCE] for at in range(0, words, _SENTENCE)]
    return " ".join(f"{' '.join(sentence).capitalize()}." for sentence in sentences)
