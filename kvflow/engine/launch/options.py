"""What a start of SGLang can be asked for."""

from dataclasses import dataclass, field

from kvflow.engine.launch.device import Device
from kvflow.recipe.model import Mode


@dataclass(frozen=True, slots=True)
class Options:
    """What a start is asked for, beside the recipe; None leaves it to recipe and defaults.

    Attributes:
        device: what SGLang runs on.
        model: path or name of the model.
        mode: how much of kvflow is at work; only `off` without the plugin.
        host: address to bind to.
        port: port to listen on.
        link_gbps: speed of the CPU engine's emulated link in GB/s.
        api_key: the key that the server will want.
        sglang_flags: flags for SGLang as typed; they win over all others.
        with_plugin: whether kvflow's plugin is loaded; without it SGLang is stock.
        host_tier: whether SGLang keeps evicted KV in host memory (HiCache); it does by default.
    """

    device: Device
    model: str | None = None
    mode: Mode | None = None
    host: str | None = None
    port: int | None = None
    link_gbps: float | None = None
    api_key: str | None = field(default=None, repr=False)
    sglang_flags: tuple[str, ...] = ()
    with_plugin: bool = False
    host_tier: bool | None = None
