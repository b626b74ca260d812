"""Runs a model folder with onnxruntime: the serving implementation of ``backend.py``.

Keys and values live in preallocated buffers of a few sizes, bound as past and present of the same
graph, so a denoise step copies no cache and rolling back is only counting. Knows nothing of
prompts, of denoising schedules or of where the folder came from.

One backend, its sequences included, serves one thread at a time.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import psutil
from numpy.typing import NDArray

from ..config import ModelConfig
from ..errors import InstallError, InvalidRequest, SettingsError, WeightsError
from ..network.quantize import float_type
from ..network.rope import rope_tables, stretch
from ..weights.combine import MANIFEST, problem_of, read_json
from .backend import CanvasOutput, CausalOutput, IntArray, Sequence
from .device import Provider, check_onnxruntime, cuda_problem, import_onnxruntime, pick_device
from .kv_memory import Buffer, Pool, memory_on, size_class

__all__ = ["OnnxBackend", "check_onnxruntime", "pick_device", "size_class"]

Form = Literal["prefill", "denoise", "packed"]

#: Of the graphs this module knows how to feed; as in ``network/onnx_files.py``, which brings onnx
#: along.
LAYOUT = 2

#: Bytes of KV buffers kept for reuse after they were released.
DEFAULT_KV_BYTES = 1 << 30

#: Tokens of one forward pass of prefill; more are not faster and take memory.
CHUNK = 512
#: The same where every row is judged: the logits of 128 rows take 25 MB.
VERIFY_CHUNK = 128

#: Microseconds a thread waits for work before it sleeps.
SPIN_US = 20


def _described(folder: Path) -> tuple[ModelConfig, str]:
    """Configuration and variant of a model folder, its files compared with the manifest."""
    again = "Run 'redraft model pull' again."
    if (folder / MANIFEST).exists() and (problem := problem_of(folder, None, thorough=False)):
        raise WeightsError(f"The model in {folder} cannot be used: {problem}. {again}")
    about, config = read_json(folder / "graphs.json"), read_json(folder / "config.json")
    if about.get("layout") != LAYOUT or not config:
        raise WeightsError(
            f"{folder} holds no model that this Redraft can run (layout {about.get('layout')}, "
            f"needed {LAYOUT}). {again}"
        )
    return ModelConfig.from_dict(config), str(about.get("variant"))


def _provider(runtime: Any, wanted: str | None, variant: str) -> Provider:
    """The provider to run on, tried out where it is CUDA."""
    name = (wanted or ("CUDA" if variant == "fp16" else "CPU")).upper()
    if name == "CPU":
        return "CPU"
    if name != "CUDA":
        raise SettingsError(f"Unknown provider {wanted!r}: choose CPU or CUDA.")
    if variant != "fp16":
        raise SettingsError(f"The variant {variant} does not run on CUDA: choose fp16.")
    if problem := cuda_problem(runtime):
        raise InstallError(
            f"The model variant {variant} needs CUDA, but {problem}. Choose the variant int8 to "
            "run on the CPU."
        )
    return "CUDA"


def default_threads() -> int:
    """Physical cores this process may use."""
    physical = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else physical
    return max(1, min(physical, allowed))


class OnnxBackend:
    """One model folder on one device.

    Args:
        folder: as ``materialise`` wrote it; where there is a manifest, files are compared with it.
        provider: "CPU" or "CUDA"; None: CUDA for fp16, the CPU for the other variants.
        threads: None: all physical cores this process may use.
        kv_bytes: released KV buffers are kept for reuse while all buffers fit in this.

    Raises:
        InstallError: onnxruntime is missing, doubled or too old.
        WeightsError: the folder is incomplete, corrupt or does not load.
    """

    def __init__(
        self,
        folder: Path,
        provider: str | None = None,
        threads: int | None = None,
        kv_bytes: int = DEFAULT_KV_BYTES,
    ) -> None:
        self._runtime = import_onnxruntime()
        self._folder = folder
        self._config, self._variant = _described(folder)
        self._provider = _provider(self._runtime, provider, self._variant)
        self._threads = threads or default_threads()
        self._dtype = float_type(self._variant)
        self._sessions: dict[Form, Any] = {}
        self._tables: dict[int, tuple[Any, Any]] = {}
        self._memory = memory_on(self._runtime, self._provider, self._config, self._dtype)
        self._pool = Pool(self._memory, kv_bytes, self.bytes_per_token)
        self.session("prefill")
        self.session("denoise")

    @property
    def config(self) -> ModelConfig:
        return self._config

    @property
    def variant(self) -> str:
        return self._variant

    @property
    def provider(self) -> str:
        return self._provider

    @cached_property
    def notice(self) -> str:
        """Why this does not run on CUDA, for people, to be said once; "" when it does."""
        if self._provider == "CUDA":
            return ""
        problem = cuda_problem(self._runtime)
        if not problem:
            return f"Running on the CPU: the variant {self._variant} is for it; fp16 uses CUDA."
        return f"Running on the CPU: {problem}."

    @property
    def bytes_per_token(self) -> int:
        c = self._config
        return 2 * c.layers * c.kv_heads * c.head_dim * self._dtype.itemsize

    def prepare(self, capacity: int) -> None:
        """Have the memory for a sequence of ``capacity`` tokens ready before the first request."""
        self._pool.prepare(size_class(capacity))

    def new_sequence(self, capacity: int) -> OnnxSequence:
        """An empty sequence of the smallest size class that holds ``capacity`` tokens.

        Raises:
            InvalidRequest: no size class is that large, or there is no memory for it.
        """
        return OnnxSequence(self, self._pool.take(size_class(capacity)))

    def fork(self, sequence: Sequence, length: int, capacity: int) -> OnnxSequence:
        """A new sequence with the first ``length`` tokens of another; empty where its size class
        rotates positions differently (see ``rope.stretch``): those keys would be wrong."""
        assert isinstance(sequence, OnnxSequence) and 0 <= length <= len(sequence.tokens)
        fork = self.new_sequence(capacity)
        if stretch(self._config, fork.capacity) == stretch(self._config, sequence.capacity):
            self._memory.copy(sequence.buffer, fork.buffer, length)
            fork.adopt(sequence.tokens[:length])
        return fork

    def release(self, sequence: Sequence) -> None:
        """The sequence may not be used any more."""
        assert isinstance(sequence, OnnxSequence)
        self._pool.give_back(sequence.detach())

    def close(self) -> None:
        self._sessions.clear()
        self._tables.clear()
        self._pool.clear()

    # --- for sequences

    @property
    def runtime(self) -> Any:
        return self._runtime

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    @property
    def idle_rows(self) -> int:
        """Rows that prefill scores where none is asked for: a CUDA kernel may refuse to be launched
        over nothing; on the CPU none costs nothing."""
        return 1 if self._provider == "CUDA" else 0

    def session(self, form: Form) -> Any:
        """The session of a graph, loaded at first use: ``packed`` may never be needed."""
        if form not in self._sessions:
            self._sessions[form] = self._load(self._folder / f"{form}.onnx")
        return self._sessions[form]

    def tables(self, capacity: int) -> tuple[Any, Any]:
        """Cosines and sines for a capacity, on the device."""
        if capacity not in self._tables:
            cos, sin = rope_tables(self._config, capacity)
            self._tables[capacity] = (
                self._memory.hold(cos.astype(self._dtype)),
                self._memory.hold(sin.astype(self._dtype)),
            )
        return self._tables[capacity]

    def _load(self, path: Path) -> Any:
        options = self._runtime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = self._threads
        # Threads that spin take the cores from the editor, and from each other: where another
        # program held one of two cores, a denoise step took 93 ms with the default and 59 ms with
        # this, which still bridges the gaps between two parallel operators.
        options.add_session_config_entry("session.intra_op.spin_duration_us", str(SPIN_US))
        options.add_session_config_entry("session.force_spinning_stop", "1")
        providers = ["CPUExecutionProvider"]
        if self._provider == "CUDA":
            providers.insert(0, "CUDAExecutionProvider")
        try:
            session = self._runtime.InferenceSession(str(path), options, providers=providers)
        except Exception as error:  # onnxruntime raises many kinds, none of them documented
            raise WeightsError(
                f"onnxruntime cannot load {path}: {error}. Run 'redraft model pull' again; if that "
                "does not help, 'redraft doctor' says more."
            ) from error
        if providers[0] not in session.get_providers():  # onnxruntime falls back in silence
            raise InstallError(
                f"CUDA stopped working while {path.name} was loaded: its memory may be full. Close "
                "programs that use the GPU, or choose the variant int8 to run on the CPU."
            )
        return session


class OnnxSequence:
    """Tokens and their keys and values in one buffer. See ``backend.Sequence``."""

    def __init__(self, backend: OnnxBackend, buffer: Buffer) -> None:
        self._backend = backend
        self._buffer: Buffer | None = buffer
        self._tokens: list[int] = []
        self._passes: dict[tuple[Form, int], _Pass] = {}
        self._bias: tuple[tuple[int, int, int], NDArray[Any]] | None = None

    @property
    def tokens(self) -> list[int]:
        return self._tokens

    @property
    def capacity(self) -> int:
        return self.buffer.capacity

    @property
    def buffer(self) -> Buffer:
        assert self._buffer is not None, "this sequence was released"
        return self._buffer

    def adopt(self, tokens: list[int]) -> None:
        """The buffer already holds the keys and values of ``tokens``."""
        self._tokens = list(tokens)

    def detach(self) -> Buffer:
        buffer = self.buffer
        self._buffer = None
        self._passes.clear()
        self._tokens = []
        return buffer

    def truncate(self, length: int) -> None:
        assert 0 <= length <= len(self._tokens)
        del self._tokens[length:]

    def prefill(self, tokens: IntArray) -> None:
        self._check_room(len(tokens))
        idle = self._backend.idle_rows
        for start in range(0, len(tokens), CHUNK):
            chunk = tokens[start : start + CHUNK]
            self._append(chunk, chunk[:idle], {})

    def verify(self, tokens: IntArray, logits: bool = False) -> CausalOutput:
        self._check_room(len(tokens))
        n = len(tokens)
        token, confidence = np.empty((n, 1), np.int64), np.empty((n, 1), np.float32)
        log_probability = np.empty((n, 1), np.float32)
        values = np.empty((n, self._backend.config.vocab), np.float32) if logits else None
        for start in range(0, n, VERIFY_CHUNK):
            part = slice(start, start + VERIFY_CHUNK)
            outputs: dict[str, NDArray[Any]] = {
                "token": token[part],
                "confidence": confidence[part],
                "log_probability": log_probability[part],
            }
            if values is not None:
                outputs["logits"] = values[part]
            following = np.append(tokens, tokens[-1:])[start + 1 : start + VERIFY_CHUNK + 1]
            self._append(tokens[part], following, outputs)  # nobody reads the last one's target
        return CausalOutput(token[:, 0], confidence[:, 0], log_probability[:-1, 0], values)

    def _append(self, chunk: IntArray, targets: IntArray, outputs: dict[str, NDArray[Any]]) -> None:
        """Append ``chunk``; ``outputs`` are filled with what is said of ``targets``, each after
        the token of the same index.

        A single token is run twice, one behind the other, and the second is forgotten: one row
        goes through other kernels than several, whose last bits differ, and quantised activations
        grow that to 7 % of a key over 30 layers (300 single tokens on the real weights). From two
        rows on, keys and values are equal bit by bit however a prompt is chunked, in fp32, q8 and
        int8; the second row costs a fifth of the first.
        """
        one = self._pass("prefill", len(outputs))
        one.feed("rows", np.arange(len(targets), dtype=np.int64))
        one.feed("targets", targets)
        alone = len(chunk) == 1 and len(self._tokens) + 2 <= self.capacity
        rows = np.repeat(chunk, 2) if alone else chunk
        one.run(rows, len(self._tokens), outputs)
        self._tokens.extend(chunk.tolist())

    def denoise(self, window: IntArray, logits: bool = False) -> CanvasOutput:
        self._check_room(len(window))
        return self._canvas("denoise", window, window.shape, logits)

    def denoise_packed(self, windows: IntArray, logits: bool = False) -> CanvasOutput:
        count, width = windows.shape
        self._check_room(count * width)
        cached = len(self._tokens)
        if count == 1 or cached == 0:
            # Without a cache GroupQueryAttention takes only the first position and counts on.
            return stack([self.denoise(window, logits) for window in windows])
        one = self._pass("packed", 4 if logits else 3)
        positions = cached + np.tile(np.arange(width, dtype=np.int64), count)
        one.feed("positions", positions[None])
        one.feed("bias", self._separation(count, width))
        return self._canvas("packed", windows.reshape(-1), windows.shape, logits)

    def _canvas(
        self, form: Form, tokens: IntArray, shape: tuple[int, ...], logits: bool
    ) -> CanvasOutput:
        n = len(tokens)
        outputs: dict[str, NDArray[Any]] = {
            "token": np.empty((n, 1), np.int64),
            "confidence": np.empty((n, 1), np.float32),
            "entropy": np.empty((n, 1), np.float32),
        }
        if logits:
            outputs["logits"] = np.empty((n, self._backend.config.vocab), np.float32)
        self._pass(form, len(outputs)).run(tokens, len(self._tokens), outputs)
        return CanvasOutput(
            outputs["token"].reshape(shape),
            outputs["confidence"].reshape(shape),
            np.maximum(outputs["entropy"], 0.0).reshape(shape),  # rounding leaves -1e-6
            outputs["logits"].reshape(*shape, -1) if logits else None,
        )

    def _separation(self, count: int, width: int) -> NDArray[Any]:
        """Attention bias that hides windows from each other. [1, 1, K·B, cached + K·B]"""
        cached = len(self._tokens)
        if self._bias is None or self._bias[0] != (count, width, cached):
            hidden = -1e9 if self._backend.dtype == np.float32 else -6e4
            owner = np.repeat(np.arange(count), width)
            bias = np.zeros((1, 1, len(owner), cached + len(owner)), self._backend.dtype)
            bias[0, 0, :, cached:][owner[:, None] != owner] = hidden
            self._bias = ((count, width, cached), bias)
        return self._bias[1]

    def _pass(self, form: Form, outputs: int) -> _Pass:
        """One binding per graph and per set of outputs, told apart by how many they are: outputs
        cannot be unbound one by one."""
        key = (form, outputs)
        if key not in self._passes:
            self._passes[key] = _Pass(self._backend, form, self.buffer)
        return self._passes[key]

    def _check_room(self, count: int) -> None:
        if len(self._tokens) + count > self.capacity:
            raise InvalidRequest(
                f"{len(self._tokens):,} + {count:,} tokens do not fit in a sequence of "
                f"{self.capacity:,}: ask for more room when acquiring it."
            )


def stack(outputs: list[CanvasOutput]) -> CanvasOutput:
    """Outputs [B] of several windows as one [K, B]."""
    logits = [output.logits for output in outputs if output.logits is not None]
    return CanvasOutput(
        np.stack([output.token for output in outputs]),
        np.stack([output.confidence for output in outputs]),
        np.stack([output.entropy for output in outputs]),
        np.stack(logits) if logits else None,
    )


class _Pass:
    """A graph bound to one KV buffer; only the small inputs and the outputs change per run."""

    def __init__(self, backend: OnnxBackend, form: Form, buffer: Buffer) -> None:
        self._runtime = backend.runtime
        self._session = backend.session(form)
        self._binding = self._session.io_binding()
        self._fed: dict[str, Any] = {}  # the binding does not keep the arrays alive
        for name, value in buffer.values():
            self._binding.bind_ortvalue_input(f"past_{name}", value)
            self._binding.bind_ortvalue_output(f"present_{name}", value)
        cos, sin = backend.tables(buffer.capacity)
        self._binding.bind_ortvalue_input("cos", cos)
        self._binding.bind_ortvalue_input("sin", sin)

    def feed(self, name: str, array: NDArray[Any]) -> None:
        """Bind a small input; where the device is not the CPU, this copies it there."""
        value = self._value(array)
        self._fed[name] = value
        self._binding.bind_ortvalue_input(name, value)

    def run(self, tokens: IntArray, cached: int, outputs: dict[str, NDArray[Any]]) -> None:
        """Run over ``tokens`` [n] behind ``cached`` tokens and fill ``outputs``."""
        total = cached + len(tokens)
        self.feed("tokens", tokens[None])
        self.feed("seqlens_k", np.array([total - 1], np.int32))
        self.feed("total", np.array(total, np.int32))
        for name, array in outputs.items():
            self._fed[name] = self._value(array)
            self._binding.bind_ortvalue_output(name, self._fed[name])
        self._session.run_with_iobinding(self._binding)

    def _value(self, array: NDArray[Any]) -> Any:
        return self._runtime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array))
