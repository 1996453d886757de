"""The table of failures: what each row is known by, and that the words are still SGLang's."""

import errno
import os
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from kvflow.engine.launch import failures
from kvflow.errors import ExitCode, KvflowError

LOG = Path("/logs/sglang-30000.log")
UNKNOWN = "SGLang has ended (exit status 1)"
KILLED = "SGLang has ended (ended by SIGKILL)"


class Case(NamedTuple):
    """A line of a real log, what is made of it, and where the words stand in the sources."""

    line: str
    what: str
    source: str
    words: str
    code: ExitCode = ExitCode.FAILURE


CASES = (
    Case(
        "sglang serve: error: unrecognized arguments: --bogus 3",
        "SGLang does not know --bogus 3",
        "argparse.py",
        "unrecognized arguments: ",
        ExitCode.USAGE,
    ),
    Case(
        "sglang serve: error: argument --device: expected one argument",
        "SGLang does not accept the value of --device",
        "argparse.py",
        "argument %(argument_name)s: %(message)s",
        ExitCode.USAGE,
    ),
    Case(
        "RuntimeError: SGLANG_PLATFORM='kvflow_cpu' not found in discovered platform plugins "
        "(available: none). Install the plugin with 'pip install -e' to register its entry_points.",
        "SGLang does not find the platform kvflow_cpu",
        "sglang/srt/platforms/__init__.py",
        'f"SGLANG_PLATFORM={selected!r} not found in discovered platform plugins "',
        ExitCode.USAGE,
    ),
    Case(
        "RuntimeError: Multiple platform plugins activated: 'a', 'b'. Set SGLANG_PLATFORM to "
        "select one.",
        "SGLang finds more than one platform: 'a', 'b'",
        "sglang/srt/platforms/__init__.py",
        'f"Multiple platform plugins activated: {names_str}. "',
        ExitCode.USAGE,
    ),
    Case(
        "ValueError: --radix-cache-backend='kvflow' is not registered. Registered backends: [].",
        "SGLang runs without the kvflow plugin",
        "sglang/srt/mem_cache/registry.py",
        'f"--radix-cache-backend={name!r} is not registered. "',
    ),
    Case(
        "ValueError: the kvflow CPU engine serves one rank: leave --tp and --pp at 1",
        "the CPU engine serves one rank",
        "kvflow/engine/cpu/platform.py",
        "the kvflow CPU engine serves one rank",
        ExitCode.USAGE,
    ),
    Case(
        "OSError: nobody/nothing is not a local folder and is not a valid model identifier listed",
        "there is no model some/model",
        "transformers/utils/hub.py",
        "is not a local folder and is not a valid model identifier",
    ),
    Case(
        "Repository Not Found for url: https://huggingface.co/api/models/nobody/nothing.",
        "there is no model some/model",
        "huggingface_hub/utils/_http.py",
        'f"Repository Not Found for url: ',
    ),
    Case(
        "OSError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/no/m'.",
        "there is no model some/model",
        "huggingface_hub/utils/_validators.py",
        "Repo id must be in the form",
    ),
    Case(
        "Cannot access gated repo for url https://huggingface.co/some/model/resolve/main/c.json.",
        "the model some/model is gated",
        "huggingface_hub/utils/_http.py",
        "Cannot access gated repo for url",
    ),
    Case(
        "OSError: You are trying to access a gated repo.",
        "the model some/model is gated",
        "transformers/utils/hub.py",
        "You are trying to access a gated repo",
    ),
    Case(
        "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't",
        "the model some/model is not on this machine",
        "transformers/utils/hub.py",
        "We couldn't connect to '",
    ),
    Case(
        "LocalEntryNotFoundError: Cannot find the requested files in the disk cache and outgoing "
        "traffic has been disabled.",
        "the model some/model is not on this machine",
        "huggingface_hub/file_download.py",
        "outgoing traffic has been disabled",
    ),
    Case(
        "LocalEntryNotFoundError: An error happened while trying to locate the file on the Hub",
        "the model some/model is not on this machine",
        "huggingface_hub/file_download.py",
        "An error happened while trying to locate the file",
    ),
    Case(
        "ValueError: Loading this model requires you to execute custom code contained in the model",
        "the model some/model brings code of its own",
        "transformers/dynamic_module_utils.py",
        "requires you to execute custom code",
    ),
    Case(
        "RuntimeError: Failed to load the tokenizer. If it is a custom tokenizer, consider setting "
        "`trust_remote_code=True` in LLM or using the `--trust-remote-code` flag in the CLI.",
        "the model some/model brings code of its own",
        "sglang/srt/utils/hf_transformers/tokenizer.py",
        "using the `--trust-remote-code` flag",
    ),
    Case(
        "ValueError: Model architectures ['Odd'] are not supported for now. Supported: ...",
        "SGLang cannot serve some/model",
        "sglang/srt/models/registry.py",
        'f"Model architectures {architectures} are not supported for now. "',
    ),
    Case(
        "ValueError: Not enough host memory available. Requesting 80.00 GB but only have 7.00 GB",
        "not enough host memory for the host tier",
        "sglang/srt/mem_cache/pool_host/base.py",
        "Not enough host memory available. Requesting",
    ),
    Case(
        "ValueError: No host memory is left for HiCache after the 10 GiB reserve; set --hicache-ra",
        "no host memory is left for the host tier",
        "sglang/srt/mem_cache/hicache_auto_size.py",
        "No host memory is left for HiCache after the 10 GiB reserve; ",
    ),
    Case(
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current",
        "no memory is left for the KV cache",
        "sglang/srt/model_executor/pool_configurator.py",
        "Not enough memory. Please try to increase --mem-fraction-static",
    ),
    Case(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.00 GiB. GPU 0 has",
        "not enough GPU memory",
        "torch/lib/libc10_cuda.so",
        "CUDA out of memory. Tried to allocate",
    ),
    Case(
        "RuntimeError: [enforce fail at alloc_cpu.cpp:114] . DefaultCPUAllocator: can't allocate "
        "memory: you tried to allocate 800000000000 bytes.",
        "not enough host memory",
        "torch/lib/libc10.so",
        "DefaultCPUAllocator: can't allocate memory",
    ),
    Case(
        "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9). If exit code",
        "a process of SGLang was killed",
        "sglang/srt/entrypoints/engine.py",
        'scheduler died during initialization "',
    ),
    Case(
        "Subprocess scheduler_0 (pid=7) crashed with exit code -9. Triggering SIGQUIT for cleanup",
        "a process of SGLang was killed",
        "sglang/srt/utils/watchdog.py",
        'f"Subprocess {name} (pid={proc.pid}) crashed "',
    ),
    Case(
        "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA",
        "SGLang finds no GPU",
        "torch/lib/libc10_cuda.so",
        "Found no NVIDIA driver",
        ExitCode.MISSING,
    ),
    Case(
        "RuntimeError: No CUDA GPUs are available",
        "SGLang finds no GPU",
        "torch/lib/libc10_cuda.so",
        "No CUDA GPUs are available",
        ExitCode.MISSING,
    ),
    Case(
        "AssertionError: Torch not compiled with CUDA enabled",
        "SGLang finds no GPU",
        "torch/cuda/__init__.py",
        "Torch not compiled with CUDA enabled",
        ExitCode.MISSING,
    ),
    Case(
        "RuntimeError: No accelerator (CUDA, XPU, HPU, NPU, MUSA, MPS) or platform plugin is",
        "SGLang finds no GPU",
        "sglang/srt/utils/common.py",
        "No accelerator (CUDA, ",
        ExitCode.MISSING,
    ),
    Case(
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
        "the NVIDIA driver is too old",
        "torch/lib/libc10_cuda.so",
        "The NVIDIA driver on your system is too old",
        ExitCode.MISSING,
    ),
    Case(
        "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 30000): "
        "address already in use",
        "port 30000 is in use",
        "asyncio/base_events.py",
        "error while attempting to bind on ",
    ),
    Case(
        f"OSError: [Errno 28] {os.strerror(errno.ENOSPC)}: '/some/where'",
        "the disk is full",
        "",
        "",
    ),
)


# What SGLang logs before it ends itself, its main process too, by SIGKILL.
OWN_KILLS = (
    ("srt/utils/common.py", "kill_process_tree called"),
    ("srt/entrypoints/engine.py", "Received sigquit from a child process"),
    ("srt/managers/tokenizer_manager.py", "SIGQUIT received"),
)


def explain(text: str, ended: str = UNKNOWN) -> KvflowError:
    return failures.explain(LOG, text, model="some/model", port=30000, ended=ended)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.line[:40])
def test_explain_known_failure_is_told_in_three_lines(case: Case) -> None:
    error = explain(
        "[2026-01-01 00:00:00] server_args={'model_path': 'm'}\n"
        "Traceback (most recent call last):\n"
        '  File "server.py", line 1, in main\n'
        f"{case.line}\n"
        "[2026-01-01 00:00:01] kill_process_tree called: parent_pid=1\n"
    )

    assert error.what == case.what
    assert error.exit_code == case.code
    assert len(str(error).splitlines()) == 3
    assert "{" not in str(error)


def test_explain_every_row_of_the_table_has_a_case() -> None:
    reached = {row for case in CASES for row in failures.FAILURES if row.pattern.search(case.line)}

    assert reached == set(failures.FAILURES)


def test_explain_cause_wins_over_its_consequence() -> None:
    error = explain(
        "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9).\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.00 GiB. GPU 0 has a\n"
    )

    assert error.what == "not enough GPU memory"
    assert error.why == "CUDA out of memory. Tried to allocate 9.00 GiB."


def test_explain_words_in_a_traceback_s_source_are_not_the_message() -> None:
    error = explain(
        "Traceback (most recent call last):\n"
        '  File "hub.py", line 610, in get\n'
        '    raise OSError("You are trying to access a gated repo.")\n'
        "ValueError: something else\n"
    )

    assert error.what == UNKNOWN
    assert error.why == "ValueError: something else"


def test_explain_unknown_failure_quotes_the_last_errors_and_names_the_log() -> None:
    error = explain(
        "[2026-01-01 00:00:00] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "scheduler.py", line 1, in run\n'
        "some.module.OddError: first\n"
        "[2026-01-01 00:00:01 TP0] some chatter\n"
        "RuntimeError: second\n"
        "RuntimeError: second\n"
        "[2026-01-01 00:00:02] kill_process_tree called\n"
    )

    assert error.what == UNKNOWN
    assert error.why == "RuntimeError: second"
    assert error.hint == f"the whole log: {LOG}"


def test_explain_log_without_any_error_quotes_its_end() -> None:
    assert explain("one\ntwo\nthree\n").why == "two / three"


def test_explain_empty_log_still_says_what_happened() -> None:
    assert str(explain("")) == f"error: {UNKNOWN}\n hint: the whole log: {LOG}"


def test_explain_killed_from_outside_tells_of_the_kernel() -> None:
    error = explain("[2026-01-01 00:00:00] Load weight begin.\n", ended=KILLED)

    assert error.what == KILLED
    assert "runs out of memory" in error.why
    assert "dmesg" in error.hint
    assert str(LOG) in error.hint


@pytest.mark.parametrize("last", [words for _, words in OWN_KILLS])
def test_explain_sglang_that_killed_itself_is_not_blamed_on_the_kernel(last: str) -> None:
    error = explain(f"OddError: first\n[2026-01-01 00:00:02] {last}\n", ended=KILLED)

    assert (error.what, error.why) == (KILLED, "OddError: first")


@pytest.mark.engine
@pytest.mark.parametrize(("source", "words"), OWN_KILLS)
def test_explain_words_of_sglang_killing_itself_stand_in_the_installed_sources(
    source: str, words: str
) -> None:
    spec = find_spec("sglang")
    assert spec is not None
    assert spec.origin is not None

    assert words in (Path(spec.origin).parent / source).read_text()


@pytest.mark.engine
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.source], ids=lambda case: case.line[:40]
)
def test_explain_words_stand_in_the_installed_sources(case: Case) -> None:
    package, _, inside = case.source.partition("/")
    spec = find_spec(package.removesuffix(".py"))
    if spec is None or spec.origin is None:
        pytest.fail(f"{package} is not installed")
    source = Path(spec.origin).parent / inside if inside else Path(spec.origin)

    assert case.words.encode() in source.read_bytes()
