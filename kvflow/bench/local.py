"""Benching servers of our own: started for it, pressed by ratios, ended with it."""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kvflow.bench.arms import Arm
from kvflow.bench.fleet import Narrate, SideBySide, launches, running
from kvflow.bench.measure import Access
from kvflow.bench.model import FixedSet, fixed_set
from kvflow.bench.one_at_a_time import taking_turns
from kvflow.bench.regime import Pools, pools
from kvflow.bench.session import Facts, Stage
from kvflow.bench.setting import Setting
from kvflow.bench.stages import CpuStage, LocalStage
from kvflow.engine.cpu import demo_model
from kvflow.engine.launch import Device, Launch, Options, before_start, build, demo, flags
from kvflow.errors import KvflowError, UsageError
from kvflow.recipe.load import Loaded

_START_S = 1800.0
_KEYS = frozenset({"--api-key", "--admin-api-key"})


@dataclass(frozen=True, slots=True)
class LocalRig:
    """Starts the servers that arms need.

    Attributes:
        device: what SGLang runs on.
        model: to serve; None for the recipe's on a GPU, and the built-in one on a CPU.
        access: how servers are talked to.
        flags: for SGLang, of all arms alike.
    """

    device: Device
    model: str | None
    access: Access
    flags: Sequence[str] = ()
    _fixed: dict[str, FixedSet] = field(default_factory=dict)

    def check(self, settings: Sequence[Setting]) -> None:
        """Find what would make the bench fail, before anything is started.

        Raises:
            UsageError: a setting makes no sense on this device or with this model; or the servers
                would want a key.
            KvflowError: the model cannot be read or written.
        """
        for setting in settings:
            if setting.link_ratio is not None and self.device != "cpu":
                raise UsageError(
                    f"--link-ratio {setting.link_ratio:g} is for the CPU engine",
                    f"on {self.device} the link is real",
                    "leave it out, or say --device cpu",
                )
            self._pools(setting)
            self._check_for_keys(setting)

    def _check_for_keys(self, setting: Setting) -> None:
        options = Options(device=self.device, model=self.model, sglang_flags=tuple(self.flags))
        launch = build(options, setting.served, os.environ)
        for flag in _KEYS.intersection(launch.argv):
            raise UsageError(
                f"{flag} does not go with servers that a bench starts",
                "nobody but the bench calls them, and it sends no key",
                f"leave {flag} out; a server with a key is benched with --url and KVFLOW_API_KEY",
            )

    def key(self, setting: Setting) -> object:
        """Servers can be shared where pools and the served workflow are the same."""
        recipe = setting.served.recipe
        return self._pools(setting).pressed, recipe.name, tuple(recipe.agents)

    @contextlib.contextmanager
    def opened(
        self, settings: Sequence[Setting], arms: Sequence[Arm], narrate: Narrate
    ) -> Iterator[Stage]:
        """Servers for all arms: side by side on a CPU, one at a time on a GPU.

        Raises:
            KvflowError: nothing can be started here.
        """
        opened = self._side_by_side if self.device == "cpu" else self._one_at_a_time
        with opened(settings, arms, narrate) as stage:
            yield stage

    @contextlib.contextmanager
    def _side_by_side(
        self, settings: Sequence[Setting], arms: Sequence[Arm], narrate: Narrate
    ) -> Iterator[Stage]:
        failed: dict[str, KvflowError] = {}
        with tempfile.TemporaryDirectory() as folder:
            link = Path(folder) / "link.gbps"
            link.write_text("")
            environ = {**os.environ, "KVFLOW_LINK_GBPS": f"@{link}"}
            wanted = {
                arm: replace(launch, env={**launch.env, "KVFLOW_LINK_LOG": f"{folder}/{arm}.log"})
                for arm, launch in self._launches(settings, arms, environ).items()
            }
            with running(wanted, environ, _START_S, narrate, failed) as stations:
                yield CpuStage(self, SideBySide(stations, failed), link)

    @contextlib.contextmanager
    def _one_at_a_time(
        self, settings: Sequence[Setting], arms: Sequence[Arm], narrate: Narrate
    ) -> Iterator[Stage]:
        for launch in self._launches(settings, arms, os.environ).values():
            before_start(launch, os.environ)  # what no start could do without

        def launch_of(arm: Arm) -> Launch:
            return self._launches(settings, [arm], os.environ)[arm.name]

        with taking_turns(launch_of, os.environ, _START_S, narrate) as fleet:
            yield LocalStage(self, fleet)

    def _launches(
        self, settings: Sequence[Setting], arms: Sequence[Arm], environ: Mapping[str, str]
    ) -> dict[str, Launch]:
        sizes = [self._pools(setting) for setting in settings]
        return launches(
            arms,
            settings[0].served,
            Pools(sizes[0].pressed, max(size.limit for size in sizes)),
            device=self.device,
            model=self.model,
            flags=self.flags,
            environ=environ,
        )

    def fixed(self, loaded: Loaded) -> FixedSet:
        """The size of a recipe's fixed prefixes."""
        return fixed_set(loaded, self.model_of(loaded))

    @property
    def dtype(self) -> str:
        """Of weights and cache on the CPU engine: as the flags say, else what suits the CPU."""
        return flags.value_of(flags.parse(self.flags), "--dtype") or demo_model.best_dtype()

    def model_of(self, loaded: Loaded) -> str:
        """Path or name of the model that serves a recipe.

        Raises:
            UsageError: nobody names one.
            KvflowError: the built-in model cannot be written.
        """
        if self.model is not None:
            return self.model
        if self.device == "cpu":
            if not demo_model.folder().is_dir():
                demo.write()
            return str(demo_model.folder())
        if loaded.recipe.engine.model is None:
            raise UsageError(
                "no model to serve",
                "neither the recipe's engine.model nor --model names one",
                "kvflow bench RECIPE --model Qwen/Qwen2.5-7B-Instruct",
            )
        return loaded.recipe.engine.model

    def _pools(self, setting: Setting) -> Pools:
        if setting.name not in self._fixed:
            self._fixed[setting.name] = self.fixed(setting.served)
        return pools(setting, self._fixed[setting.name])

    def facts(self, setting: Setting) -> Facts:
        """What is set up for a setting, before the link is known."""
        sizes = self._pools(setting)
        return {
            "device": self.device,
            "model": Path(self.model_of(setting.served)).name,
            "fixed_tokens": self._fixed[setting.name].unique,
            "longest_prefix_tokens": self._fixed[setting.name].longest,
            "pool_tokens": sizes.pressed,
            "limit_pool_tokens": sizes.limit,
        }
