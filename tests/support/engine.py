"""SGLang in this process, on the CPU engine. To be imported before anything of SGLang's.

SGLang chooses its platform once a process, and its imports warn about what a CPU lacks.
"""

import os
import warnings
from unittest import mock

CPU_ENGINE = {"KVFLOW_DEVICE": "cpu", "SGLANG_PLATFORM": "kvflow_cpu"}

with mock.patch.dict(os.environ, CPU_ENGINE), warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from sglang.srt.managers import scheduler
    from sglang.srt.platforms import current_platform

    from kvflow.engine import plugin
    from kvflow.engine.cpu import link, platform, shims, streams

    streams.install()
    shims.install(link.Link())
    plugin.register()

assert isinstance(current_platform, platform.CpuEngine), "SGLang was imported before this"
Scheduler = scheduler.Scheduler
