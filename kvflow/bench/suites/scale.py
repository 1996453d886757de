"""How large a suite is: as in the paper, or as much smaller as a plain CPU needs it."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """What lengths are divided by. Pool and link follow by their ratios.

    Attributes:
        name: as typed.
        prompt: divides fixed and dynamic parts.
        output: divides answers. Less than prompts, since a CPU takes longer to decode a token,
            compared with what it takes to compute a prompt, and that ratio is to stay as well.
        has_link: whether the link's speed is set by its ratio, too.
    """

    name: str
    prompt: int
    output: int
    has_link: bool

    def prompt_tokens(self, tokens: int) -> int:
        """A fixed or dynamic part in this scale."""
        return max(1, tokens // self.prompt)

    def output_tokens(self, tokens: int) -> int:
        """An answer in this scale."""
        return max(1, tokens // self.output)

    def link(self, ratio: float) -> float | None:
        """A link ratio where it can be set."""
        return ratio if self.has_link else None


SCALES: Mapping[str, Scale] = {
    "full": Scale("full", prompt=1, output=1, has_link=False),
    "cpu": Scale("cpu", prompt=8, output=2, has_link=True),
}
