"""The graphs of a ready folder in onnxruntime, and the inputs that every pass shares.

Opens sessions; holds the embedding, the tables of positions and the tokens that are not predicted.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..config import ModelConfig
from ..errors import InstallError, SettingsError, WeightsError
from ..network.frequent import FREQUENT_FILE, read_frequent
from ..network.layout import DATA_FILE, LAYOUT, Form
from ..network.quantize import HALF, variant_named
from ..weights.files import MANIFEST, problem_of, read_json
from .backend import SUPPRESSED, Cancelled
from .embedding import Embedding
from .kv_memory import DeviceMemory, KVMemory
from .mask_sampler import MaskSampler
from .rope import rope_tables
from .short_head import ShortHead

#: What a pass is for: to append tokens, to append rows at given positions, or to read a canvas.
Purpose = Literal["causal", "placed", "denoise"]
#: Microseconds a thread waits for work before it sleeps.
SPIN_US = 20

_AGAIN = "Run 'redraft model pull' again, or import it again if it was imported."


def describe_session(folder: Path) -> tuple[ModelConfig, dict[str, Any]]:
    """Return the configuration of a model folder and its ``graphs.json``.

    Raises:
        WeightsError: the folder is incomplete, corrupt or of another layout.
    """
    if (folder / MANIFEST).exists() and (problem := problem_of(folder, None, thorough=False)):
        raise WeightsError(f"The model in {folder} cannot be used: {problem}. {_AGAIN}")
    about, config = read_json(folder / "graphs.json"), read_json(folder / "config.json")
    if about.get("layout") != LAYOUT or not config:
        raise WeightsError(
            f"{folder} holds no model that this Redraft can run (layout {about.get('layout')}, "
            f"needed {LAYOUT}). {_AGAIN}"
        )
    return ModelConfig.from_dict(config), about


def check_runs(variant: str, provider: str) -> None:
    """Check that a provider can run a variant.

    Raises:
        SettingsError: the variant is unknown, or not for this provider.
    """
    variant_named(variant)
    if (variant in HALF) != (provider == "CUDA"):
        fitting = " or ".join(HALF) if provider == "CUDA" else "int8, q4 or fp32"
        raise SettingsError(f"The variant {variant} does not run on {provider}: choose {fitting}.")


class Graphs:
    """The graphs of one folder on one device.

    Args:
        about: ``graphs.json``; see :func:`describe_session`.
        runtime: the onnxruntime module.

    Raises:
        InstallError: the provider stopped working.
        WeightsError: a graph is missing or does not load.
    """

    def __init__(
        self,
        folder: Path,
        config: ModelConfig,
        about: dict[str, Any],
        runtime: Any,
        provider: str,
        threads: int,
    ) -> None:
        self.config = config
        self.runtime = runtime
        self.provider = provider
        self.variant = str(about.get("variant"))
        self.dtype = variant_named(self.variant).dtype
        self.memory = KVMemory(runtime, config, self.dtype)
        if provider == "CUDA":
            self.memory = DeviceMemory(runtime, config, self.dtype, "cuda")
        self._run_options = runtime.RunOptions()
        self._run_options.log_severity_level = 4  # an interrupted pass is no error
        self._tables: dict[int, tuple[Any, Any]] = {}
        self._suppressed: dict[tuple[int, ...], Any] = {}
        forms: tuple[Form, ...] = tuple(about.get("forms", ()))
        if not forms:
            raise WeightsError(f"{folder} names no graph. {_AGAIN}")
        tables = about.get("tables", {})
        self.embedding = Embedding(folder / DATA_FILE, tables, config, self.dtype)
        held = self.embedding.sampler
        self.sampler = MaskSampler(held, self.embedding) if held else None
        named = folder / FREQUENT_FILE
        self.short_head = (
            ShortHead(config, read_frequent(named), self.embedding) if named.exists() else None
        )
        self.sessions = {
            form: open_session(runtime, folder / f"{form}.onnx", provider, threads)
            for form in forms
        }

    @property
    def idle_rows(self) -> int:
        """Rows that are scored in a pass of which no score is needed.

        A CUDA kernel may refuse to be launched over nothing, and onnxruntime before 1.32 reduces no
        rows to a wrong shape, which int8 does.
        """
        release = tuple(int(part) for part in re.findall(r"\d+", self.runtime.__version__)[:2])
        misshapen = self.variant == "int8" and release < (1, 32)
        return 1 if self.provider == "CUDA" or misshapen else 0

    @property
    def unseen(self) -> float:
        """The attention bias that hides a token."""
        return -1e9 if self.dtype == np.float32 else -6e4

    def form_for(self, purpose: Purpose) -> Form:
        """Return the graph that serves a purpose.

        Raises:
            SettingsError: these weights have no such graph.
        """
        form: Form = "denoise" if purpose == "denoise" else "causal"
        if form not in self.sessions:
            raise SettingsError(
                f"{self.config.name} never reads from left to right alone, so its drafts cannot be "
                "verified that way. Set verifier to none."
            )
        return form

    def run(self, form: Form, binding: Any) -> None:
        """Run one pass over what is bound.

        Raises:
            Cancelled: it was interrupted.
        """
        try:
            self.sessions[form].run_with_iobinding(binding, self._run_options)
        except RuntimeError:
            if self._run_options.terminate:
                raise Cancelled from None
            raise

    def interrupt(self, now: bool) -> None:
        """End the running pass and each later one between two operators, or let passes run again.

        That takes some milliseconds.
        """
        self._run_options.terminate = now

    def tables(self, capacity: int) -> tuple[Any, Any]:
        """Return cosines and sines for a capacity, on the device."""
        if capacity not in self._tables:
            cos, sin = rope_tables(self.config, capacity)
            self._tables[capacity] = (
                self.memory.hold(cos.astype(self.dtype)),
                self.memory.hold(sin.astype(self.dtype)),
            )
        return self._tables[capacity]

    def suppression_bias(self, permitted: tuple[int, ...]) -> Any:
        """Return the bias [vocab] that suppresses all other special tokens, on the device."""
        if permitted not in self._suppressed:
            bias = np.where(self._special, np.float32(SUPPRESSED), np.float32(0.0))
            bias[list(permitted)] = 0.0
            self._suppressed[permitted] = self.memory.hold(bias)
        return self._suppressed[permitted]

    def end_at_specials(self, outputs: dict[str, NDArray[Any]]) -> None:
        """Replace each special token that a pass predicted by END, in place.

        For weights that were trained to end in one of several. END then has the probability of the
        likeliest of them.
        """
        end = self.config.end_token
        outputs["top"][self._special[outputs["top"]]] = end
        logits = outputs.get("logits")
        if logits is not None:
            ends = logits[:, self._special].max(axis=1)
            logits[:, self._special] = SUPPRESSED
            logits[:, end] = ends

    @cached_property
    def _special(self) -> NDArray[np.bool_]:
        special = np.ones(self.config.vocab, np.bool_)
        special[self.config.text_ids.start : self.config.text_ids.stop] = False
        return special

    def close(self) -> None:
        """Free the sessions."""
        self.embedding.close()
        self.sessions.clear()
        self._tables.clear()
        self._suppressed.clear()


def open_session(runtime: Any, path: Path, provider: str, threads: int) -> Any:
    """Return onnxruntime's session of a graph; the CPU runs the operators a provider does not take.

    Raises:
        InstallError: onnxruntime has no such provider, or it stopped working.
        WeightsError: the graph does not load.
    """
    name = f"{provider}ExecutionProvider"
    if name not in runtime.get_available_providers():
        raise InstallError(
            f"{provider} cannot be used: the installed onnxruntime has no such provider."
        )
    used = list(dict.fromkeys((name, "CPUExecutionProvider")))
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    # Threads that spin take the cores from the editor, and from each other: where another
    # program held one of two cores, a pass took 93 ms with the default and 59 ms with this, which
    # still bridges the gaps between two parallel operators.
    options.add_session_config_entry("session.intra_op.spin_duration_us", str(SPIN_US))
    options.add_session_config_entry("session.force_spinning_stop", "1")
    try:
        session = runtime.InferenceSession(str(path), options, providers=used)
    except Exception as error:  # onnxruntime raises many kinds, none of them documented
        raise WeightsError(
            f"onnxruntime cannot load {path}: {error}. Run 'redraft model pull' again; if that "
            "does not help, 'redraft doctor' says more."
        ) from error
    if name not in session.get_providers():  # onnxruntime falls back in silence
        raise InstallError(
            f"{provider} stopped working while {path.name} was loaded: its memory may be "
            "full. Close programs that use it, or choose the provider cpu with the variant int8."
        )
    return session
