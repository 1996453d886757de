"""SGLang's frontend language with tags: one `sgl.function` is one agent (paper section 3.3).

The frontend has no field for `custom_params`, so the tag goes in just before a request is made:
where the backend asks the sampling parameters of a `gen` for what to send, and where a `select`
sends its own. Nothing of SGLang's is replaced; copies of the function and of its backend are.
"""

import copy
from collections.abc import Callable
from typing import Any, TypeVar

from kvflow.client.run import Run
from kvflow.client.tagging import CustomParams
from kvflow.errors import UsageError

Program = TypeVar("Program")

_PARTS_OF_FUNCTION = ("func", "run", "run_batch", "bind")
_PARTS_OF_ENDPOINT = ("generate", "generate_stream", "_generate_http_request")


def as_agent(
    program: Program,
    run: Run,
    backend: Any,
    agent: str | None = None,
    *,
    fixed_tokens: int | None = None,
    final: bool = False,
) -> Program:
    """A `sgl.function` that speaks as an agent; the one that is given is left as it is.

    Every `gen` and `select` in it, forks and batches included, is a tagged call. What the frontend
    only sends to warm the cache (a batch's common prefix, the text before a fork) is not.

    Args:
        program: what `@sgl.function` made.
        run: the run that the calls belong to; its `steps` are looked up at each call.
        backend: a `sgl.RuntimeEndpoint`, or a `sgl.Runtime` that holds one.
        agent: who speaks, by its name in the recipe; the function's own name if absent.
        fixed_tokens: length of the agent's fixed prefix, if the application knows it.
        final: whether the run ends with a call of this function.

    Returns:
        A function of the same type, to be called or run as the other one, without `backend=`.

    Raises:
        UsageError: one of the two is not what it should be, or the server would ignore a part of
            the tag.
    """
    endpoint = getattr(backend, "endpoint", backend)
    if not _has(program, _PARTS_OF_FUNCTION):
        raise UsageError(f"{type(program).__name__} is not a sgl.function")
    if not _has(endpoint, _PARTS_OF_ENDPOINT):
        raise UsageError(
            f"{type(endpoint).__name__} is not a backend whose calls can be tagged",
            "sgl.RuntimeEndpoint is",
            "for a server elsewhere, use its URL: sgl.RuntimeEndpoint(url)",
        )
    function: Any = program
    name = function.func.__name__ if agent is None else agent

    def params() -> CustomParams:
        return run.tag(name, fixed_tokens, final=final)

    params()  # refused now rather than at the first call
    speaker: Program = _bound_to(program, _tagging(endpoint, params))
    return speaker


def _has(thing: object, names: tuple[str, ...]) -> bool:
    return all(callable(getattr(thing, name, None)) for name in names)


def _bound_to(program: Any, endpoint: Any) -> Any:
    """A copy of a function that runs on this endpoint, as does what is bound from it."""
    kind, speaker = type(program), copy.copy(program)

    # The class's own methods: `program` may be the function of another agent.
    def run(*args: Any, **kwargs: Any) -> Any:
        return kind.run(program, *args, backend=endpoint, **kwargs)

    def run_batch(*args: Any, **kwargs: Any) -> Any:
        return kind.run_batch(program, *args, backend=endpoint, **kwargs)

    def bind(**kwargs: Any) -> Any:
        return _bound_to(kind.bind(program, **kwargs), endpoint)

    speaker.run, speaker.run_batch, speaker.bind = run, run_batch, bind
    return speaker


def _tagging(endpoint: Any, params: Callable[[], CustomParams]) -> Any:
    """A copy of an endpoint that adds these `custom_params` to its calls."""
    speaker = copy.copy(endpoint)

    def generate(s: Any, sampling_params: Any) -> Any:
        return endpoint.generate(s, _carrying(sampling_params, params()))

    def generate_stream(s: Any, sampling_params: Any) -> Any:
        return endpoint.generate_stream(s, _carrying(sampling_params, params()))

    def request(s: Any, data: dict[str, Any]) -> Any:
        sampling_params = {**data["sampling_params"], "custom_params": params()}
        return endpoint._generate_http_request(s, {**data, "sampling_params": sampling_params})

    speaker.generate, speaker.generate_stream = generate, generate_stream
    speaker._generate_http_request = request  # which only `select` asks
    return speaker


def _carrying(sampling_params: Any, params: CustomParams) -> Any:
    """A copy of sampling parameters that has more to send."""
    more = copy.copy(sampling_params)
    # The endpoint still changes the copy (`dtype`, `stop`) before it asks.
    more.to_srt_kwargs = lambda: {
        **type(more).to_srt_kwargs(more),
        "custom_params": params,
    }
    return more
