"""Goodput: calls a second that were fast enough, as `vllm bench serve` asks for it."""

from collections.abc import Mapping, Sequence

from kvflow.client.exchange import Answer
from kvflow.errors import UsageError

Limits = Mapping[str, float]
"""The most milliseconds by metric: ttft, tpot, e2el."""

METRICS = ("ttft", "tpot", "e2el")


def parse(text: str) -> Limits:
    """Read `ttft:300 e2el:2000` (commas will do).

    Raises:
        UsageError: not a metric, or not a positive number.
    """
    limits: dict[str, float] = {}
    for part in text.replace(",", " ").split():
        name, _, value = part.partition(":")
        try:
            milliseconds = float(value)
        except ValueError:
            milliseconds = 0.0
        if name not in METRICS or not 0 < milliseconds < float("inf"):
            raise UsageError(
                f"--goodput {part!r} is no limit",
                f"a limit is a metric ({', '.join(METRICS)}), a colon and milliseconds",
                "--goodput 'ttft:300 e2el:2000'",
            )
        limits[name] = milliseconds
    if not limits:
        raise UsageError("--goodput names no limit", hint="--goodput 'ttft:300 e2el:2000'")
    return limits


def tpot_s(answer: Answer) -> float | None:
    """Seconds a token after the first; None of an answer of one token."""
    if answer.output_tokens is None or answer.output_tokens < 2:
        return None
    return (answer.latency_s - answer.ttft_s) / (answer.output_tokens - 1)


def is_good(answer: Answer, limits: Limits) -> bool:
    """Whether a call kept within every limit."""
    took = {"ttft": answer.ttft_s, "tpot": tpot_s(answer) or 0.0, "e2el": answer.latency_s}
    return all(took[name] * 1e3 <= most for name, most in limits.items())


def goodput(answers: Sequence[Answer], seconds: float, limits: Limits) -> float:
    """Calls a second that kept within every limit."""
    return sum(is_good(answer, limits) for answer in answers) / seconds
