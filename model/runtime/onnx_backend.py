"""Runs a model folder with onnxruntime: the serving implementation of ``backend.py``.

Keys and values live in preallocated buffers of a few sizes, bound as past and present of the same
graph, so a denoise step copies no cache and rolling back is only counting. Knows nothing of
prompts, of denoising schedules or of where the folder came from.

One backend, its sequences included, serves one thread at a time.
"""

from __future__ import annotations

import os
from collections.abc import Sequence as Seq
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import psutil
from numpy.typing import NDArray

from ..config import ModelConfig
from ..errors import InstallError, InvalidRequest, SettingsError, WeightsError
from ..network.quantize import float_type
from ..network.rope import rope_tables, stretch
from ..weights.manifest import MANIFEST, problem_of, read_json
from .backend import (
    CHUNK,
    Cancelled,
    CanvasOutput,
    CausalOutput,
    IntArray,
    JudgedOutput,
    Sequence,
)
from .device import (
    OTHERS,
    PROVIDERS,
    Provider,
    check_onnxruntime,
    check_other,
    cuda_problem,
    import_onnxruntime,
    pick_device,
)
from .embedding import Embedding
from .kv_memory import Buffer, Pool, memory_on, size_class
from .mapped_files import MappedFiles
from .special_ends import SpecialEnds

__all__ = ["OnnxBackend", "check_onnxruntime", "pick_device", "size_class"]

Form = Literal["shared", "prefill", "denoise", "packed"]
#: What a pass is for; one graph may serve several.
Purpose = Literal["prefill", "denoise", "packed", "judge"]
#: The graphs that can do it, the best first.
_FITTING: dict[Purpose, tuple[Form, ...]] = {
    "prefill": ("prefill", "shared"),
    "denoise": ("denoise", "packed", "shared"),
    "packed": ("packed", "shared"),
    "judge": ("prefill", "shared"),
}

#: Of the graphs this module knows how to feed; as in ``network/onnx_files.py``, which brings onnx
#: along.
LAYOUT = 4

#: The file beside the graphs that holds every large tensor; as in ``network/onnx_graph.py``.
DATA_FILE = "weights.bin"

#: Bytes of KV buffers kept for reuse after they were released.
DEFAULT_KV_BYTES = 1 << 30

#: The same where every row is judged: the logits of 64 rows of 151,936 take 39 MB.
VERIFY_CHUNK = 64

#: Added to the logits of tokens that are never predicted.
SUPPRESSED = -1e9

#: Microseconds a thread waits for work before it sleeps.
SPIN_US = 20


def _described(folder: Path) -> tuple[ModelConfig, dict[str, Any]]:
    """Configuration of a model folder, its files compared with the manifest; ``graphs.json``."""
    again = "Run 'redraft model pull' again, or import it again if it was imported."
    if (folder / MANIFEST).exists() and (problem := problem_of(folder, None, thorough=False)):
        raise WeightsError(f"The model in {folder} cannot be used: {problem}. {again}")
    about, config = read_json(folder / "graphs.json"), read_json(folder / "config.json")
    if about.get("layout") != LAYOUT or not config:
        raise WeightsError(
            f"{folder} holds no model that this Redraft can run (layout {about.get('layout')}, "
            f"needed {LAYOUT}). {again}"
        )
    return ModelConfig.from_dict(config), about


def _mapped(folder: Path) -> MappedFiles:
    try:
        return MappedFiles([folder / DATA_FILE])
    except OSError as error:
        raise WeightsError(
            f"{folder / DATA_FILE} cannot be read: {error.strerror}. Run 'redraft model pull' "
            "again."
        ) from error


def _provider(runtime: Any, wanted: str | None, variant: str) -> Provider:
    """The provider to run on, tried out where it is CUDA."""
    name = (wanted or ("CUDA" if variant == "fp16" else "CPU")).upper()
    if name == "CPU":
        return "CPU"
    if name in OTHERS:
        if variant == "fp16":
            raise SettingsError(f"The variant fp16 does not run on {name}: choose q8.")
        check_other(runtime, name)
        return cast("Provider", name)
    if name != "CUDA":
        raise SettingsError(f"Unknown provider {wanted!r}: choose one of {', '.join(PROVIDERS)}.")
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
        provider: one of PROVIDERS; None: CUDA for fp16, the CPU for the other variants.
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
        self._config, about = _described(folder)
        self._mapped = _mapped(folder)
        self._variant = str(about.get("variant"))
        self._forms = tuple(about.get("forms", ()))
        self._provider = _provider(self._runtime, provider, self._variant)
        self._threads = threads or default_threads()
        self._dtype = float_type(self._variant)
        self._sessions: dict[Form, Any] = {}
        self._run_options = self._runtime.RunOptions()
        self._run_options.log_severity_level = 4  # an interrupted pass is no error
        self._tables: dict[int, tuple[Any, Any]] = {}
        self._suppressed: dict[tuple[int, ...], Any] = {}
        self._memory = memory_on(self._runtime, self._provider, self._config, self._dtype)
        self._pool = Pool(self._memory, kv_bytes, self.bytes_per_token)
        self.session(self.form_for("prefill"))
        self.session(self.form_for("denoise"))
        self._embedding = Embedding(
            folder / DATA_FILE, about.get("tables", {}), self._config, self._dtype
        )

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

    def keep(self, kv_bytes: int) -> None:
        """Keep released KV buffers while all fit in this; to be called while none is in use."""
        self._pool.limit(kv_bytes)

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

    def changed(self) -> str:
        """Why the weights are not what was loaded: somebody wrote into their file; "" if not."""
        file = self._mapped.changed()
        return "" if file is None else f"{file.name} was written to while it was in use"

    def interrupt(self) -> None:
        """See ``backend.Interruptible``: heard between two operators, after some milliseconds."""
        self._run_options.terminate = True

    def resume(self) -> None:
        self._run_options.terminate = False

    def close(self) -> None:
        self._sessions.clear()
        self._tables.clear()
        self._suppressed.clear()
        self._pool.clear()
        self._mapped.close()

    # --- for sequences

    def touch(self, buffer: Buffer) -> None:
        self._memory.touch(buffer)

    @property
    def runtime(self) -> Any:
        return self._runtime

    def run(self, session: Any, binding: Any) -> None:
        """One pass over what is bound.

        Raises:
            Cancelled: it was interrupted.
        """
        try:
            session.run_with_iobinding(binding, self._run_options)
        except RuntimeError:
            if self._run_options.terminate:
                raise Cancelled from None
            raise

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    @property
    def idle_rows(self) -> int:
        """Rows that prefill scores where none is asked for: a CUDA kernel may refuse to be launched
        over nothing; on the CPU none costs nothing."""
        return 1 if self._provider == "CUDA" else 0

    def form_for(self, purpose: Purpose) -> Form:
        """The graph of this folder that serves a purpose."""
        for form in _FITTING[purpose]:
            if form in self._forms:
                return form
        raise WeightsError(
            f"{self._folder} has no graph for {purpose}, only {', '.join(self._forms) or 'none'}. "
            "Run 'redraft model pull' again, or import it again if it was imported."
        )

    def reads_masks(self, purpose: Purpose) -> bool:
        """Whether masks are read as the canvas has learnt them."""
        return purpose != "prefill"

    @property
    def embedding(self) -> Embedding:
        return self._embedding

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

    @cached_property
    def special_ends(self) -> SpecialEnds | None:
        """What reads any special token as END, where these weights end in one of several."""
        return SpecialEnds(self._config) if self._config.specials_end else None

    def suppressed(self, permitted: tuple[int, ...]) -> Any:
        """[vocab] what keeps other marks than those from being predicted, on the device."""
        if permitted not in self._suppressed:
            text = self._config.text_ids
            bias = np.full(self._config.vocab, SUPPRESSED, np.float32)
            bias[text.start : text.stop] = 0.0
            bias[list(permitted)] = 0.0
            self._suppressed[permitted] = self._memory.hold(bias)
        return self._suppressed[permitted]

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
        elif self._provider in OTHERS:
            providers.insert(0, OTHERS[self._provider][0])
        try:
            session = self._runtime.InferenceSession(str(path), options, providers=providers)
        except Exception as error:  # onnxruntime raises many kinds, none of them documented
            raise WeightsError(
                f"onnxruntime cannot load {path}: {error}. Run 'redraft model pull' again; if that "
                "does not help, 'redraft doctor' says more."
            ) from error
        if providers[0] not in session.get_providers():  # onnxruntime falls back in silence
            raise InstallError(
                f"{self._provider} stopped working while {path.name} was loaded: its memory may be "
                "full. Close programs that use the GPU, or choose the variant int8 to run on the "
                "CPU."
            )
        return session


class OnnxSequence:
    """Tokens and their keys and values in one buffer. See ``backend.Sequence``."""

    def __init__(self, backend: OnnxBackend, buffer: Buffer) -> None:
        self._backend = backend
        self._buffer: Buffer | None = buffer
        self._tokens: list[int] = []
        self._passes: dict[tuple[Purpose, int], _Pass] = {}
        self._bias: tuple[tuple[int, int, int], NDArray[Any]] | None = None
        self._permitted: tuple[int, ...] = backend.config.ends

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

    def pretend(self, tokens: list[int]) -> None:
        """Take ``tokens`` for cached without computing them, their keys and values in memory that
        is really there: for measuring, as zeros that were never touched are read faster."""
        self._backend.touch(self.buffer)
        self.adopt(tokens)

    def detach(self) -> Buffer:
        buffer = self.buffer
        self._buffer = None
        self._passes.clear()
        self._tokens = []
        return buffer

    def permit(self, marks: Seq[int]) -> None:
        self._permitted = tuple(marks)

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

    def judge(
        self,
        tokens: IntArray,
        positions: IntArray,
        sees: NDArray[np.bool_],
        judging: int,
        logits: bool = False,
    ) -> JudgedOutput:
        if judging == len(tokens) or not self._tokens:
            # Without a cache GroupQueryAttention takes only the first position and counts on.
            return JudgedOutput.without_masks(self.verify(tokens[:judging], logits))
        n, masks, cached = len(tokens), len(tokens) - judging, len(self._tokens)
        alone = int(judging == 1)  # as in _append: run twice, so that it has the bits of a prompt's
        self._check_room(n + alone)
        outputs: dict[str, NDArray[Any]] = {
            "token": np.empty((n, 1), np.int64),
            "confidence": np.empty((n, 1), np.float32),
            "log_probability": np.empty((n, 1), np.float32),
        }
        if logits:
            outputs["logits"] = np.empty((n, self._backend.config.vocab), np.float32)
        read = np.concatenate([tokens[:judging], tokens[:alone], tokens[judging:]])
        twin = np.ones(alone, np.int64)
        placed = np.concatenate([positions[:judging], twin, positions[judging:]])
        rows = np.concatenate([np.arange(judging), np.arange(judging, n) + alone])
        bias = np.zeros((1, 1, n + alone, cached + n + alone), self._backend.dtype)
        hidden = np.ones((masks, n + alone), np.bool_)  # the kernel hides what comes later
        hidden[:, rows] = ~sees[judging:]
        bias[0, 0, judging + alone :, cached:][hidden] = self._unseen
        one = self._pass("judge", len(outputs))
        one.place(cached + placed, bias)
        one.run(read, cached, rows, np.append(tokens[1:], tokens[-1:]), outputs, masks)
        self._tokens.extend(tokens[:judging].tolist())
        token, confidence = outputs["token"][:, 0], outputs["confidence"][:, 0]
        causal = CausalOutput(
            token[:judging],
            confidence[:judging],
            outputs["log_probability"][: judging - 1, 0],
            outputs["logits"][:judging] if logits else None,
        )
        return JudgedOutput(causal, token[judging:], confidence[judging:])

    @property
    def branches(self) -> bool:
        """Whether the graph that takes any positions reads as the judge does."""
        config = self._backend.config
        return config.attention == "canvas" and config.adapter in ("none", "all")

    def branch(
        self, tokens: IntArray, depths: IntArray, sees: NDArray[np.bool_], base: int
    ) -> CausalOutput:
        n, held = len(tokens), len(self._tokens)
        alone = int(n == 1)  # as in _append
        self._check_room(n + alone)
        rows = np.arange(n, dtype=np.int64)
        outputs: dict[str, NDArray[Any]] = {
            "token": np.empty((n, 1), np.int64),
            "confidence": np.empty((n, 1), np.float32),
            "logits": np.empty((n, self._backend.config.vocab), np.float32),
        }
        bias = np.zeros((1, 1, n + alone, held + n + alone), self._backend.dtype)
        bias[0, 0, :n, base : held + n][~sees] = self._unseen
        bias[0, 0, :n, held + n :] = self._unseen
        one = self._pass("packed", len(outputs))
        one.place(base + np.append(depths, depths[-1:] + 1)[: n + alone], bias)
        read = np.append(tokens, tokens[-1:])[: n + alone]
        one.run(read, held, rows, tokens, outputs)
        self._tokens.extend(tokens.tolist())
        token, confidence = outputs["token"][:, 0], outputs["confidence"][:, 0]
        return CausalOutput(token, confidence, np.empty(0, np.float32), outputs["logits"])

    @property
    def _unseen(self) -> float:
        """Attention bias of what is not to be seen."""
        return -1e9 if self._backend.dtype == np.float32 else -6e4

    def _append(self, chunk: IntArray, targets: IntArray, outputs: dict[str, NDArray[Any]]) -> None:
        """Append ``chunk``; ``outputs`` are filled with what is said of ``targets``, each after
        the token of the same index.

        A single token is run twice, one behind the other, and the second is forgotten: one row
        goes through other kernels than several, whose last bits differ, and quantised activations
        grow that to 7 % of a key over 30 layers (300 single tokens on the real weights). From two
        rows on, keys and values are equal bit by bit however a prompt is chunked, in fp32, q8 and
        int8; the second row costs a fifth of the first.
        """
        alone = len(chunk) == 1 and len(self._tokens) + 2 <= self.capacity
        tokens = np.repeat(chunk, 2) if alone else chunk
        rows = np.arange(len(targets), dtype=np.int64)
        self._pass("prefill", len(outputs)).run(tokens, len(self._tokens), rows, targets, outputs)
        self._tokens.extend(chunk.tolist())

    def denoise(self, window: IntArray, logits: bool = False) -> CanvasOutput:
        read = self._with_ahead(window[None])
        self._check_room(read.size)
        one = self._pass("denoise", 3 if logits else 2)
        if one.placed:
            one.place(self._cached_and(read.size), self._separation(*read.shape))
        return self._canvas(one, read, window.shape, logits)

    def denoise_packed(self, windows: IntArray, logits: bool = False) -> CanvasOutput:
        read = self._with_ahead(windows)
        count, width = read.shape
        self._check_room(read.size)
        if count == 1 or not self._tokens:
            # Without a cache GroupQueryAttention takes only the first position and counts on.
            return stack([self.denoise(window, logits) for window in windows])
        one = self._pass("packed", 3 if logits else 2)
        one.place(np.tile(self._cached_and(width), count), self._separation(count, width))
        return self._canvas(one, read, windows.shape, logits)

    def _with_ahead(self, windows: IntArray) -> IntArray:
        """What is read of ``windows`` [K, B]. Weights without the shift predict a masked position
        in its own place: they read one mask more, and are asked one place further on."""
        config = self._backend.config
        if config.logit_shift:
            return windows
        return np.pad(windows, ((0, 0), (0, 1)), constant_values=config.mask_token)

    def _cached_and(self, width: int) -> IntArray:
        """Positions of a window behind what is cached. [width]"""
        return len(self._tokens) + np.arange(width, dtype=np.int64)

    def _canvas(
        self, one: _Pass, read: IntArray, shape: tuple[int, ...], logits: bool
    ) -> CanvasOutput:
        """The predictions of windows of ``shape`` out of what is read of them, [K, B] or more."""
        spoken = np.arange(read.size, dtype=np.int64).reshape(read.shape)
        rows = spoken[:, read.shape[1] - shape[-1] :].reshape(-1)
        n = len(rows)
        outputs: dict[str, NDArray[Any]] = {
            "token": np.empty((n, 1), np.int64),
            "confidence": np.empty((n, 1), np.float32),
        }
        if logits:
            outputs["logits"] = np.empty((n, self._backend.config.vocab), np.float32)
        tokens = read.reshape(-1)
        one.run(tokens, len(self._tokens), rows, tokens[rows], outputs)
        return CanvasOutput(
            outputs["token"].reshape(shape),
            outputs["confidence"].reshape(shape),
            outputs["logits"].reshape(*shape, -1) if logits else None,
        )

    def _separation(self, count: int, width: int) -> NDArray[Any]:
        """Attention bias that hides windows from each other. [1, 1, K·B, cached + K·B]"""
        cached = len(self._tokens)
        if self._bias is None or self._bias[0] != (count, width, cached):
            owner = np.repeat(np.arange(count), width)
            bias = np.zeros((1, 1, len(owner), cached + len(owner)), self._backend.dtype)
            bias[0, 0, :, cached:][owner[:, None] != owner] = self._unseen
            self._bias = ((count, width, cached), bias)
        return self._bias[1]

    def _pass(self, purpose: Purpose, outputs: int) -> _Pass:
        """One binding per purpose and per set of outputs, told apart by how many they are: outputs
        cannot be unbound one by one."""
        key = (purpose, outputs)
        if key not in self._passes:
            self._passes[key] = _Pass(self._backend, purpose, self.buffer)
        one = self._passes[key]
        one.suppress(self._backend.suppressed(self._permitted))
        one.ends = self._backend.special_ends if len(self._permitted) > 1 else None
        if one.ends is not None and self._permitted != self._backend.config.ends:
            one.ends = None  # a conversation, whose marks mean something each
        return one

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
        np.stack(logits) if logits else None,
    )


class _Pass:
    """A graph bound to one KV buffer; only the small inputs and the outputs change per run."""

    def __init__(self, backend: OnnxBackend, purpose: Purpose, buffer: Buffer) -> None:
        self._backend, self._runtime = backend, backend.runtime
        self._embedding, self._canvas = backend.embedding, backend.reads_masks(purpose)
        form = backend.form_for(purpose)
        causal = purpose in ("prefill", "judge")
        self.placed = form == "packed" or (form == "shared" and not causal)
        self._session = backend.session(form)
        self.ends: SpecialEnds | None = None  # where any special token is read as END
        self._binding = self._session.io_binding()
        self._fed: dict[str, Any] = {}  # the binding does not keep the arrays alive
        for name, value in buffer.values():
            self._binding.bind_ortvalue_input(f"past_{name}", value)
            self._binding.bind_ortvalue_output(f"present_{name}", value)
        cos, sin = backend.tables(buffer.capacity)
        self._binding.bind_ortvalue_input("cos", cos)
        self._binding.bind_ortvalue_input("sin", sin)
        if form == "shared":
            self.feed("causal", np.array(not self.placed))
            self.place(np.empty(0, np.int64), np.empty((1, 1, 0, 0), backend.dtype))
        self._on_masks = backend.config.adapter == "masks" and form in ("shared", "prefill")
        if self._on_masks and purpose != "judge":
            self.place(np.empty(0, np.int64), np.empty((1, 1, 0, 0), backend.dtype))

    def suppress(self, bias: Any) -> None:
        """What is added to the logits of the next pass. OrtValue [vocab]"""
        self._binding.bind_ortvalue_input("suppressed", bias)

    def place(self, positions: IntArray, bias: NDArray[Any]) -> None:
        """Where the next tokens stand, and what each may look at. [n], [1, 1, n, total]"""
        self.feed("positions", positions[None])
        self.feed("bias", bias)

    def feed(self, name: str, array: NDArray[Any]) -> None:
        """Bind a small input; where the device is not the CPU, this copies it there."""
        value = self._value(array)
        self._fed[name] = value
        self._binding.bind_ortvalue_input(name, value)

    def run(
        self,
        tokens: IntArray,
        cached: int,
        rows: IntArray,
        targets: IntArray,
        outputs: dict[str, NDArray[Any]],
        masks: int = 0,
    ) -> None:
        """Run over ``tokens`` [n] behind ``cached`` tokens and fill ``outputs``, which speak of
        ``rows`` [r] of them and of ``targets`` [r] behind these.

        Args:
            masks: so many of the last tokens are masks behind judged tokens.
        """
        total = cached + len(tokens)
        if self._on_masks:
            self.feed("masked", np.array(masks > 0))
            self.feed("mask_rows", np.arange(len(tokens) - masks, len(tokens), dtype=np.int64))
            self.feed("scored_masks", np.flatnonzero(rows >= len(tokens) - masks))
        self.feed("embedded", self._embedding.rows(tokens, self._canvas))
        self.feed("seqlens_k", np.array([total - 1], np.int32))
        self.feed("total", np.array(total, np.int32))
        self.feed("rows", rows)
        self.feed("targets", targets)
        for name, array in outputs.items():
            self._fed[name] = self._value(array)
            self._binding.bind_ortvalue_output(name, self._fed[name])
        self._backend.run(self._session, self._binding)
        if self.ends is not None:
            self.ends.read(outputs)

    def _value(self, array: NDArray[Any]) -> Any:
        return self._runtime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array))
