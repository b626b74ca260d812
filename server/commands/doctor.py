"""``redraft doctor``: checks of the installation, with advice for each problem.

Every check returns findings and raises nothing. Nothing is downloaded or changed, except the stored
measurements of this machine, which the warm-up repeats.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import shlex
import shutil
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import psutil
from redraft.model.errors import RedraftError
from redraft.model.records import EditRequest, Predictor
from redraft.model.release import RELEASE, how_to_install

from ..engine_process.client import join_running
from ..engine_process.open import open_engine
from ..engine_process.rendezvous import Rendezvous
from ..settings import Settings, config_file, load_settings
from .options import model_for
from .setup.clients import server_program

if TYPE_CHECKING:
    from redraft.model.runtime.device import Device
    from redraft.model.weights.catalog import ModelInfo

Severity = Literal["ok", "note", "problem"]

#: It ends with a segmentation fault in a project of 60 files; releases before and after do not.
BROKEN_TREE_SITTER = "0.26.0"

#: Bytes of free memory below which the model and its prefix cache would make the machine swap.
SCARCE_MEMORY_BYTES = 1_500_000_000

START_S = 30  # for a language server to start and answer, seconds

SNIPPET = '''def mean(values: list[float]) -> float:
    """The arithmetic mean."""
    total = sum(values)
    return


print(mean([1.0, 2.0, 4.0]))
'''


@dataclass(frozen=True, slots=True)
class Finding:
    verdict: Severity
    subject: str
    what: str
    advice: str = ""  # what to do, where ``what`` does not say it already


async def examine(warm_up: bool) -> list[Finding]:
    """Return all findings, the most basic first. ``warm_up`` loads the model and times it."""
    findings = [*_versions(), *_machine()]
    try:
        settings = load_settings()
    except RedraftError as error:
        bad = Finding("problem", "settings", str(error), f"Fix {config_file()} or the variable.")
        return [*findings, bad]
    findings += [*_settings_found(), *runtime_findings(settings)]
    model_findings, ready = _model(settings)
    findings += model_findings
    findings += await _engine_process(settings)
    try:
        findings.append(await language_server_finding([server_program(), "lsp"]))
    except RedraftError as error:
        findings.append(Finding("problem", "server", str(error)))
    if warm_up and ready and not any(f.verdict == "problem" for f in findings):
        findings += await _warm_up(settings)
    return [*findings, *choice_findings(settings)]  # by what the warm-up measured


def _versions() -> Iterator[Finding]:
    system = f"{platform.system()} {platform.machine()}"
    yield Finding("ok", "redraft", f"{RELEASE} on Python {platform.python_version()}, {system}")
    yield Finding("ok", "python", sys.executable)
    parser = version("tree-sitter")
    if parser == BROKEN_TREE_SITTER:
        what = f"{parser} ends the language server while it reads a project"
        yield Finding("problem", "tree-sitter", what, "Run 'pip install --upgrade tree-sitter'.")
    else:
        yield Finding("ok", "tree-sitter", parser)


async def language_server_finding(command: Sequence[str]) -> Finding:
    """Start a language server as an editor does, ask for its abilities, and end it."""
    subject, shown = "server", shlex.join(command)
    begun = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        try:
            server = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=errors
            )
        except OSError as error:
            return Finding("problem", subject, f"{shown} cannot be run: {error}")
        try:
            async with asyncio.timeout(START_S):
                answer = await _ask(server, "initialize", {"processId": None, "capabilities": {}})
                version = answer["serverInfo"]["version"]
                await _ask(server, "shutdown", None)
                server.stdin.write(_message({"method": "exit"}))  # type: ignore[union-attr]
                await server.wait()
        except (OSError, EOFError, TimeoutError, ValueError, KeyError, TypeError) as error:
            errors.seek(0)
            last = errors.read().decode(errors="replace").strip()[-400:]
            what = f"{shown} does not answer: {last or error or type(error).__name__}"
            return Finding("problem", subject, what)
        finally:
            if server.returncode is None:
                server.kill()
                await server.wait()
    seconds = time.perf_counter() - begun
    return Finding("ok", subject, f"{shown} starts, answers and ends ({version}, {seconds:.1f} s)")


async def _ask(server: Process, method: str, params: Any) -> Any:
    """Send a request and return the result of its response."""
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(_message({"id": 1, "method": method, "params": params}))
    while True:
        head = await server.stdout.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split()[0])
        message = json.loads(await server.stdout.readexactly(length))
        if "method" not in message:
            return message["result"]


def _message(fields: dict[str, Any]) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **fields}).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def runtime_findings(settings: Settings) -> Iterator[Finding]:
    """Check that exactly one recent onnxruntime is installed, and where it would run."""
    from redraft.model.calibrate import product_times
    from redraft.model.runtime.machine import check_onnxruntime, import_onnxruntime

    try:
        version = check_onnxruntime()
        found = import_onnxruntime().get_available_providers()
        providers = ", ".join(each.removesuffix("ExecutionProvider") for each in found)
        device = _device_of(settings)
        products = product_times()
    except RedraftError as error:
        yield Finding("problem", "onnxruntime", str(error))
        return
    yield Finding("ok", "onnxruntime", f"{version}, providers: {providers}")
    yield Finding("ok", "runs on", f"{device.provider}, variant {device.variant}")
    times = ", ".join(f"{name} {ms:.1f} ms" for name, ms in products.items())
    yield Finding("ok", "products", f"right on this processor, fastest first: {times}")
    if device.notice and shutil.which("nvidia-smi"):
        advice = f"To use the GPU: 'pip uninstall onnxruntime', then {how_to_install('gpu')}."
        yield Finding("note", "runs on", device.notice, advice)


def _device_of(settings: Settings) -> Device:
    """Return the device for the model, or for any model if its name is unknown."""
    from redraft.model.load import choose_device, usual_on_cpu
    from redraft.model.runtime.device import choose
    from redraft.model.weights.catalog import info

    variant, provider = settings.variant, settings.provider
    try:
        found = info(model_for(settings))
    except RedraftError:
        return choose(provider or "auto", variant or "auto", on_cpu=usual_on_cpu)
    return choose_device(found, variant, provider)


def choice_findings(settings: Settings) -> Iterator[Finding]:
    """Report the model that runs, the reason, and what a larger one that fits brings and costs."""
    from redraft.model.choice import explain_answers
    from redraft.model.load import which_model

    how = (settings.variant, settings.provider, settings.threads)
    choice = which_model(settings.model, *how)
    if choice.larger:
        what = f"{choice.model} runs. {choice.about_larger}"
        yield Finding("note", "choice", what, explain_answers(choice.larger))
    else:
        yield Finding("ok", "choice", f"{choice.model}: {choice.reason}")


def _machine() -> Iterator[Finding]:
    memory = psutil.virtual_memory()
    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    what = f"{cores} cores, {memory.available / 1e9:.1f} of {memory.total / 1e9:.1f} GB free"
    if memory.available < SCARCE_MEMORY_BYTES:
        yield Finding("note", "machine", what, "Close other programs if suggestions are slow.")
    else:
        yield Finding("ok", "machine", what)


def _settings_found() -> Iterator[Finding]:
    file = config_file()
    yield Finding("ok", "settings", f"{file}{'' if file.exists() else ' (absent: all defaults)'}")


def _model(settings: Settings) -> tuple[list[Finding], bool]:
    """Return findings about weights and cache, and whether the model can be loaded at once."""
    from redraft.model.weights.catalog import cache_dir, info
    from redraft.model.weights.store import bytes_to_pull, ready_variants

    findings, ready, variant, needed = [], False, settings.variant, 0
    try:
        model = info(model_for(settings))
        variants = ready_variants(model)
        variant = _variant(settings, model)
        ready = variant in variants
        needed = 0 if ready else bytes_to_pull(model, variant)
        shown = ", ".join(variants) or "none"
        what = f"{model.name} {variant} (ready: {shown})"
        if small := memory_problem(model, variant):
            advice = "Use a machine with more memory, or another machine's server."
            findings.append(Finding("note", "model", f"{what}: {small}", advice))
        elif ready:
            findings.append(Finding("ok", "model", what))
        else:
            advice = f"Run 'redraft model pull {model.name}'; the first use does it as well."
            findings.append(Finding("note", "model", what, advice))
    except RedraftError as error:
        advice = "Choose one that 'redraft model list' shows."
        findings.append(Finding("problem", "model", str(error), advice))
    return [*findings, *cache_findings(cache_dir(), ready, needed)], ready


def _variant(settings: Settings, model: ModelInfo) -> str:
    """Return the variant that is run here, or the usual one where none can run."""
    with suppress(RedraftError):
        return _device_of(settings).variant
    return settings.variant or model.default_variant


def memory_problem(model: ModelInfo, variant: str) -> str:
    """Return why this machine is too small for a model, or ""."""
    from redraft.model.choice import memory_needed
    from redraft.model.runtime.machine import memory_of

    needed, there = memory_needed(model, variant), memory_of("CPU")
    if 2 * needed <= there:
        return ""
    return (
        f"it takes {needed / 1e9:.1f} GB of memory, more than half of the {there / 1e9:.1f} GB of "
        "this machine"
    )


def cache_findings(folder: Path, ready: bool, needed: int) -> Iterator[Finding]:
    """Check that ``needed`` bytes of weights can be written to ``folder``."""
    verdict: Severity = "note" if ready else "problem"
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    try:
        free = shutil.disk_usage(existing).free
        if folder.exists():
            with tempfile.TemporaryFile(dir=folder):
                pass
        elif not os.access(existing, os.W_OK):
            raise PermissionError(13, f"{existing} is read-only")
    except OSError as error:
        yield Finding(
            verdict,
            "cache",
            f"{folder} cannot be written: {error.strerror}",
            "Make it writable, or set REDRAFT_CACHE_DIR to another folder.",
        )
        return
    what = f"{folder}, holds {_size_of(folder) / 1e9:.2f} GB, {free / 1e9:.1f} GB free"
    if free < needed and not ready:
        missing = f"{(needed - free) / 1e9:.1f} GB"
        advice = f"Free {missing}, or set REDRAFT_CACHE_DIR to a folder on another disk."
        yield Finding("problem", "cache", what, advice)
    else:
        yield Finding("ok", "cache", what)


def _size_of(folder: Path) -> int:
    """Return the bytes of the files in a folder. Hard links count once."""
    found: dict[tuple[int, int], int] = {}
    for file in folder.rglob("*"):
        with suppress(OSError):  # gone meanwhile
            stat = file.lstat()
            found[stat.st_dev, stat.st_ino] = stat.st_size
    return sum(found.values())


async def _engine_process(settings: Settings) -> list[Finding]:
    subject = "engine"
    try:
        meeting = Rendezvous.of(settings)
        endpoint, taken = meeting.read(), meeting.is_taken()
        remote = await join_running(settings)
    except (RedraftError, OSError) as error:
        return [Finding("problem", subject, str(error), "Set REDRAFT_RUNTIME_DIR.")]
    if remote is None or endpoint is None:
        if taken:
            who = f"process {endpoint.pid}" if endpoint else "a process"
            advice = f"If it stays so, end it and see {meeting.log_file}."
            return [Finding("note", subject, f"{who} is starting or hangs", advice)]
        return [Finding("ok", subject, "no engine process; the first editor starts one")]
    try:
        status = await remote.status()
        memory = psutil.Process(endpoint.pid).memory_info().rss
        share = "" if status.progress is None else f" {status.progress:.0%}".replace("%", " %")
        what = (
            f"process {endpoint.pid}, release {endpoint.release}, {status.model} "
            f"{status.provider}: {status.state}{share}, {memory / 1e6:.0f} MB of memory"
        )
        if status.state == "failed":
            return [Finding("problem", subject, what, status.message or str(meeting.log_file))]
        return [Finding("ok", subject, what)]
    except (RedraftError, psutil.Error) as error:
        return [Finding("note", subject, str(error), f"Its log is {meeting.log_file}.")]
    finally:
        await remote.close()


async def _warm_up(settings: Settings) -> list[Finding]:
    """Time loading, a first infill, and one after a keystroke.

    The stored measurements of this machine are deleted first, so that the load repeats them.
    """
    from redraft.model.calibrate import calibration_file

    from .console import until_ready

    with suppress(OSError):
        calibration_file().unlink(missing_ok=True)
    begun = time.perf_counter()
    predictor = open_engine(settings)
    try:
        status = await until_ready(predictor)
        loaded_s = time.perf_counter() - begun
        cold_ms = await _timed(predictor, SNIPPET, "return")
        warm_ms = await _timed(predictor, SNIPPET.replace("return", "return t"), "return t")
    except RedraftError as error:
        advice = "Run 'redraft model pull', which checks every file; report it if it stays."
        return [Finding("problem", "warm-up", str(error), advice)]
    finally:
        await predictor.close()
    what = (
        f"{status.model} on {status.provider}: loaded in {loaded_s:.1f} s, first infill "
        f"{cold_ms:.0f} ms, after a keystroke {warm_ms:.0f} ms, context "
        f"{status.context_tokens} tokens"
    )
    return [Finding("ok", "warm-up", what)]


async def _timed(predictor: Predictor, text: str, after: str) -> float:
    request = EditRequest("infill", "mean.py", text, text.index(after) + len(after), max_tokens=16)
    begun = time.perf_counter()
    await predictor.predict(request)
    return (time.perf_counter() - begun) * 1_000
