"""SGLang's common failures, told in three lines.

SGLang ends on most of them with a traceback of two or three processes. The table says by which
words of the log a failure is known, and where those words come from (SGLang 0.5.23 and the
packages that it pins); a test holds the table against the installed sources.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kvflow.errors import KvflowError, MissingPart, UsageError

_QUOTED_LINES = 2
_QUOTED_CHARS = 300

# The log also holds tracebacks, whose source lines repeat the very words of the messages.
_TRACEBACK = re.compile(r"^(  |\s*$|Traceback |During handling|The above exception)")
_STAMP = re.compile(r"^\[[^\]]*\d\d:\d\d:\d\d[^\]]*\]\s*")
_EXCEPTION = re.compile(r"^([A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt)\b|.*\berror: )")


class Failure(NamedTuple):
    """One row of the table. The texts may use the pattern's groups, and model, port and log.

    Attributes:
        pattern: what a line of the log holds.
        source: the file that writes it.
        kind: class of the error, which decides the exit code.
        what: first line.
        why: second line.
        hint: third line.
    """

    pattern: re.Pattern[str]
    source: str
    kind: type[KvflowError]
    what: str
    why: str
    hint: str


def _row(pattern: str, source: str, kind: type[KvflowError], *texts: str) -> Failure:
    return Failure(re.compile(pattern), source, kind, *texts)


_NO_GPU_HINT = "kvflow serve --device cpu, or check the driver with nvidia-smi"

_KILLED_WHY = "mostly the kernel does that when the machine runs out of memory"
_KILLED_HINT = "dmesg -T | grep -i oom; then a smaller model, or -- --max-total-tokens 8192"

# SGLang ends itself by SIGKILL too, after it has logged one of these.
_OWN_KILL = re.compile(
    r"kill_process_tree called|Received sigquit from a child process|SIGQUIT received"
)

# The first row that matches any line wins: causes stand before their consequences.
FAILURES = (
    _row(
        r"error: unrecognized arguments: (?P<flags>.+)",
        "argparse, called from sglang/srt/server_args.py",
        UsageError,
        "SGLang does not know {flags}",
        "it is passed on as it stands, and SGLang's flags are spelled with dashes",
        "python -m sglang.launch_server --help lists what it knows",
    ),
    _row(
        r"error: argument (?P<flag>--[\w/, -]+): (?P<why>.+)",
        "argparse, called from sglang/srt/server_args.py",
        UsageError,
        "SGLang does not accept the value of {flag}",
        "{why}",
        "python -m sglang.launch_server --help lists what it takes",
    ),
    _row(
        r"SGLANG_PLATFORM='(?P<name>[^']*)' not found",
        "sglang/srt/platforms/__init__.py",
        UsageError,
        "SGLang does not find the platform {name}",
        "kvflow's CPU engine is a platform plugin, and this Python does not list it",
        "pip install --force-reinstall --no-deps kvflow, in the environment that has SGLang",
    ),
    _row(
        r"Multiple platform plugins activated: (?P<names>.+?)\. ",
        "sglang/srt/platforms/__init__.py",
        UsageError,
        "SGLang finds more than one platform: {names}",
        "another package brings a platform of its own and claims this machine",
        "uninstall it, or kvflow serve --device cpu",
    ),
    _row(
        r"--radix-cache-backend='kvflow' is not registered",
        "sglang/srt/mem_cache/registry.py",
        KvflowError,
        "SGLang runs without the kvflow plugin",
        "it failed to load; SGLang says why further up in its log",
        "grep -A20 'plugin kvflow' {log}",
    ),
    _row(
        r"the kvflow CPU engine serves one rank",
        "kvflow/engine/cpu/platform.py",
        UsageError,
        "the CPU engine serves one rank",
        "the copies of its emulated link are paced by the clock, and ranks must decide alike",
        "leave --tp-size and --pp-size at 1, or serve on a GPU",
    ),
    _row(
        r"(is not a local folder and is not a valid model identifier|Repository Not Found for url)",
        "transformers/utils/hub.py, huggingface_hub/utils/_http.py",
        KvflowError,
        "there is no model {model}",
        "it is neither a folder here nor a name on the model hub that this account may read",
        "check the name; for a private model log in with: hf auth login",
    ),
    _row(
        r"Repo id must be in the form",
        "huggingface_hub/utils/_validators.py",
        KvflowError,
        "there is no model {model}",
        "no such folder exists, and it cannot be a name on the model hub",
        "check the path",
    ),
    _row(
        r"(You are trying to access a gated repo|Cannot access gated repo)",
        "transformers/utils/hub.py, huggingface_hub/utils/_http.py",
        KvflowError,
        "the model {model} is gated",
        "its owner grants access one account at a time",
        "ask for access on its page on the model hub, then: hf auth login",
    ),
    _row(
        r"(We couldn't connect to '|outgoing traffic has been disabled|"
        r"An error happened while trying to locate the file)",
        "transformers/utils/hub.py, huggingface_hub/file_download.py",
        KvflowError,
        "the model {model} is not on this machine",
        "the model hub cannot be reached, and no complete copy was downloaded before",
        "download it where there is a network and pass its folder: --model PATH",
    ),
    _row(
        r"(requires you to execute (custom code|the tokenizer file)|"
        r"using the `--trust-remote-code` flag)",
        "transformers/dynamic_module_utils.py, sglang/srt/utils/hf_transformers/tokenizer.py",
        KvflowError,
        "the model {model} brings code of its own",
        "SGLang runs such code only when it is told to",
        "read that code, then add: -- --trust-remote-code",
    ),
    _row(
        r"Model architectures (?P<names>.+) are not supported",
        "sglang/srt/models/registry.py",
        KvflowError,
        "SGLang cannot serve {model}",
        "it has no implementation of {names}",
        "serve another model: --model NAME",
    ),
    _row(
        r"Not enough host memory(?P<why>.*)",
        "sglang/srt/mem_cache/pool_host/base.py",
        KvflowError,
        "not enough host memory for the host tier",
        "not enough host memory{why}",
        "make it smaller: -- --hicache-ratio 2",
    ),
    _row(
        r"No host memory is left for HiCache after the (?P<reserve>.+) reserve",
        "sglang/srt/mem_cache/hicache_auto_size.py",
        KvflowError,
        "no host memory is left for the host tier",
        "SGLang leaves {reserve} to others, of the machine or the container, and not even that is "
        "free",
        "free some, or do without: enable-hierarchical-cache: false in engine.args of the recipe",
    ),
    _row(
        r"Not enough memory\. Please try to increase --mem-fraction-static",
        "sglang/srt/model_executor/pool_configurator.py",
        KvflowError,
        "no memory is left for the KV cache",
        "the weights of {model} take the share of memory that SGLang may use",
        "give it a larger share: -- --mem-fraction-static 0.9; or serve a smaller model",
    ),
    _row(
        r"(?P<why>CUDA out of memory\..*?)(?= GPU \d|$)",
        "torch: c10/cuda/CUDACachingAllocator.cpp",
        KvflowError,
        "not enough GPU memory",
        "{why}",
        "look for other processes with nvidia-smi, or lower it: -- --mem-fraction-static 0.7",
    ),
    _row(
        r"(DefaultCPUAllocator: (not enough memory|can't allocate memory)|\bMemoryError\b)",
        "torch: c10/core/impl/alloc_cpu.cpp",
        KvflowError,
        "not enough host memory",
        "an allocation failed while SGLang was at work on {model}",
        "make the caches smaller: -- --max-total-tokens 8192 --hicache-ratio 2",
    ),
    _row(
        r"(scheduler died during initialization \(exit code: -9\)|"
        r"Subprocess scheduler\S* .*crashed with exit code -9\b)",
        "sglang/srt/entrypoints/engine.py, sglang/srt/utils/watchdog.py",
        KvflowError,
        "a process of SGLang was killed",
        _KILLED_WHY,
        _KILLED_HINT,
    ),
    _row(
        r"(Found no NVIDIA driver|No CUDA GPUs are available|Torch not compiled with CUDA enabled|"
        r"No accelerator \(CUDA)",
        "torch/cuda/__init__.py, sglang/srt/utils/common.py",
        MissingPart,
        "SGLang finds no GPU",
        "the driver is missing, or this environment hides the device",
        _NO_GPU_HINT,
    ),
    _row(
        r"The NVIDIA driver on your system is too old",
        "torch: torch/csrc/cuda/Module.cpp",
        MissingPart,
        "the NVIDIA driver is too old",
        "the torch that SGLang 0.5.23 needs was built for a newer one",
        "update the driver, or kvflow serve --device cpu",
    ),
    _row(
        r"error while attempting to bind on address",
        "asyncio/base_events.py and uvloop, called from uvicorn",
        KvflowError,
        "port {port} is in use",
        "another process took it while SGLang was starting",
        "take another: --port NUMBER",
    ),
    _row(
        r"No space left on device",
        "the kernel (ENOSPC)",
        KvflowError,
        "the disk is full",
        "SGLang could not write",
        "df -h; models lie in ~/.cache/huggingface",
    ),
)


def explain(log: Path, text: str, *, model: str, port: int, ended: str) -> KvflowError:
    """The error that tells why SGLang ended.

    Args:
        log: where the whole log is.
        text: the end of the log.
        model: what was being served.
        port: where it was to listen.
        ended: how the process ended, for a failure that the table does not know.
    """
    said = list(_messages(text))
    values = {"model": model, "port": port, "log": log}
    for row in FAILURES:
        for line in said:
            if found := row.pattern.search(line):
                fields = values | found.groupdict()
                return row.kind(*(part.format_map(fields) for part in row[3:]))
    if "SIGKILL" in ended and not _OWN_KILL.search(text):
        return KvflowError(ended, _KILLED_WHY, f"{_KILLED_HINT}; the whole log: {log}")
    errors = [line for line in said if _EXCEPTION.search(line)] or said
    quoted = " / ".join(dict.fromkeys(errors[-_QUOTED_LINES:]))
    return KvflowError(ended, quoted[:_QUOTED_CHARS], f"the whole log: {log}")


def _messages(text: str) -> Iterator[str]:
    """The lines of a log that say something, without their time stamps."""
    for line in text.splitlines():
        if not _TRACEBACK.match(line):
            yield _STAMP.sub("", line)
