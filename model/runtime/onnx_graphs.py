"""The graphs of a ready folder, and what every pass through them is fed: which graph serves which
purpose, tokens looked up, tables of positions, tokens that are not to be predicted.

Read by passes and sequences. Knows nothing of what is in a sequence.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..config import ModelConfig
from ..errors import WeightsError
from ..network.quantize import float_type
from ..network.rope import rope_tables
from ..weights.manifest import MANIFEST, problem_of, read_json
from .backend import SUPPRESSED, Cancelled
from .embedding import Embedding
from .kv_memory import Memory, memory_on
from .onnx_session import open_session
from .sampler import Sampler
from .special_ends import SpecialEnds

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
LAYOUT = 5

#: The file beside the graphs that holds every large tensor; as in ``network/onnx_nodes.py``.
DATA_FILE = "weights.bin"


def described(folder: Path) -> tuple[ModelConfig, dict[str, Any]]:
    """Configuration of a model folder, its files compared with the manifest; ``graphs.json``.

    Raises:
        WeightsError: the folder is incomplete, corrupt or of another layout.
    """
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


class Graphs:
    """The graphs of one folder on one device.

    Args:
        about: ``graphs.json``; see :func:`described`.
        runtime: the onnxruntime module.

    Raises:
        InstallError: the provider stopped working.
        WeightsError: a graph that every model runs does not load.
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
        self.dtype = float_type(self.variant)
        self.memory: Memory = memory_on(runtime, provider, config, self.dtype)
        self._folder = folder
        self._forms = tuple(about.get("forms", ()))
        self._threads = threads
        self._sessions: dict[Form, Any] = {}
        self._run_options = runtime.RunOptions()
        self._run_options.log_severity_level = 4  # an interrupted pass is no error
        self._inputs: dict[Form, frozenset[str]] = {}
        self._tables: dict[int, tuple[Any, Any]] = {}
        self._suppressed: dict[tuple[int, ...], Any] = {}
        self.session(self.form_for("prefill"))
        if config.has_canvases:
            self.session(self.form_for("denoise"))
        tables = about.get("tables", {})
        self.embedding = Embedding(folder / DATA_FILE, tables, config, self.dtype)
        held = self.embedding.sampler
        self.sampler = Sampler(held, self.embedding) if held else None

    @property
    def idle_rows(self) -> int:
        """Rows that prefill scores where none is asked for: a CUDA kernel may refuse to be launched
        over nothing, and onnxruntime before 1.32 reduces no rows to a wrong shape, which int8 does;
        else none costs nothing."""
        release = tuple(int(part) for part in re.findall(r"\d+", self.runtime.__version__)[:2])
        misshapen = self.variant == "int8" and release < (1, 32)
        return 1 if self.provider == "CUDA" or misshapen else 0

    @property
    def unseen(self) -> float:
        """Attention bias of what is not to be seen."""
        return -1e9 if self.dtype == np.float32 else -6e4

    def form_for(self, purpose: Purpose) -> Form:
        """The graph of this folder that serves a purpose."""
        if self.config.attention != "canvas":
            return "denoise"  # the one graph there is, whatever for
        for form in _FITTING[purpose]:
            if form in self._forms:
                return form
        raise WeightsError(
            f"{self._folder} has no graph for {purpose}, only {', '.join(self._forms) or 'none'}. "
            "Run 'redraft model pull' again, or import it again if it was imported."
        )

    def reads_masks(self, purpose: Purpose) -> bool:
        """Whether masks are read as the canvas has learnt them: where weights attend otherwise than
        to a canvas, they are rows of the embedding like any other."""
        return self.config.attention == "canvas" and purpose != "prefill"

    def session(self, form: Form) -> Any:
        """Return the session of a graph, loaded at first use: not all may be needed."""
        if form not in self._sessions:
            path = self._folder / f"{form}.onnx"
            self._sessions[form] = open_session(self.runtime, path, self.provider, self._threads)
        return self._sessions[form]

    def run(self, form: Form, binding: Any) -> None:
        """One pass over what is bound.

        Raises:
            Cancelled: it was interrupted.
        """
        try:
            self.session(form).run_with_iobinding(binding, self._run_options)
        except RuntimeError:
            if self._run_options.terminate:
                raise Cancelled from None
            raise

    def interrupt(self, now: bool) -> None:
        """End the pass under way and each after it; or, where not ``now``, let them run again."""
        self._run_options.terminate = now

    def inputs(self, form: Form) -> frozenset[str]:
        """Names of what a graph is fed."""
        if form not in self._inputs:
            self._inputs[form] = frozenset(each.name for each in self.session(form).get_inputs())
        return self._inputs[form]

    @property
    def places(self) -> bool:
        """Whether the causal graph reads rows whose positions, and what each sees, are given."""
        return "placed" in self.inputs(self.form_for("judge"))

    def tables(self, capacity: int) -> tuple[Any, Any]:
        """Cosines and sines for a capacity, on the device."""
        if capacity not in self._tables:
            cos, sin = rope_tables(self.config, capacity)
            self._tables[capacity] = (
                self.memory.hold(cos.astype(self.dtype)),
                self.memory.hold(sin.astype(self.dtype)),
            )
        return self._tables[capacity]

    @cached_property
    def special_ends(self) -> SpecialEnds | None:
        """What reads any special token as END, where these weights end in one of several."""
        return SpecialEnds(self.config) if self.config.specials_end else None

    def suppressed(self, permitted: tuple[int, ...]) -> Any:
        """[vocab] what keeps other marks than those from being predicted, on the device."""
        if permitted not in self._suppressed:
            text = self.config.text_ids
            bias = np.full(self.config.vocab, SUPPRESSED, np.float32)
            bias[text.start : text.stop] = 0.0
            bias[list(permitted)] = 0.0
            self._suppressed[permitted] = self.memory.hold(bias)
        return self._suppressed[permitted]

    def close(self) -> None:
        self._sessions.clear()
        self._tables.clear()
        self._suppressed.clear()
