"""A model folder run by onnxruntime: the serving implementation of ``backend.py``.

One backend, its sequences included, serves one thread at a time.
"""

from __future__ import annotations

from pathlib import Path

from ..errors import InvalidRequest
from ..network.layout import DATA_FILE
from ..network.quantize import HALF
from .backend import Sequence
from .canvas_sequence import CanvasSequence, DiffusionSequence
from .kv_memory import MOST_TOKENS, Pool, size_class
from .machine import default_threads, import_onnxruntime
from .onnx_sequence import OnnxSequence
from .onnx_session import Graphs, check_runs, describe_session
from .rope import stretch

#: Bytes of KV buffers kept for reuse after they were released.
DEFAULT_KV_BYTES = 1 << 30


class OnnxBackend(Graphs):
    """A model folder on one device, and memory for its sequences.

    Args:
        folder: as ``materialise`` wrote it; where there is a manifest, files are compared with it.
        provider: in any case, not checked here (see :func:`device.choose`); None: CUDA for half
            precision, the CPU for the rest.
        threads: None: see :func:`.machine.default_threads`.
        kv_bytes: released KV buffers are kept for reuse while all buffers fit in this.

    Raises:
        InstallError: onnxruntime is missing, doubled or too old, or has no such provider.
        SettingsError: the provider does not run this variant.
        WeightsError: the folder is incomplete, corrupt or does not load.
    """

    def __init__(
        self,
        folder: Path,
        provider: str | None = None,
        threads: int | None = None,
        kv_bytes: int = DEFAULT_KV_BYTES,
    ) -> None:
        runtime = import_onnxruntime()
        config, about = describe_session(folder)
        variant = str(about.get("variant"))
        chosen = (provider or ("CUDA" if variant in HALF else "CPU")).upper()
        if chosen != "CPU":  # whose graphs of half precision are compared with CUDA's
            check_runs(variant, chosen)
        super().__init__(folder, config, about, runtime, chosen, threads or default_threads())
        self._pool = Pool(self.memory, kv_bytes, self.bytes_per_token)

    @property
    def bytes_per_token(self) -> int:
        c = self.config
        return 2 * c.layers * c.kv_heads * c.head_dim * self.dtype.itemsize

    def prepare(self, capacity: int) -> None:
        """Have the memory for a sequence of ``capacity`` tokens ready before the first request."""
        self._pool.prepare(size_class(capacity))

    def keep(self, kv_bytes: int) -> None:
        """Keep released KV buffers while all fit in this; to be called while none is in use."""
        self._pool.limit(kv_bytes)

    def open(self, capacity: int) -> OnnxSequence:
        """Return an empty sequence of the smallest size class that holds ``capacity`` tokens.

        Raises:
            InvalidRequest: no size class is that large, or there is no memory for it.
        """
        config = self.config
        if config.attention == "bidirectional" and capacity > MOST_TOKENS:
            raise InvalidRequest(
                f"{capacity:,} tokens are asked for; {config.name} reads all of them in every "
                f"step and takes {MOST_TOKENS:,} at most. Send less context."
            )
        kind = CanvasSequence if config.has_canvases else OnnxSequence
        if config.attention != "canvas":
            kind = DiffusionSequence
        return kind(self, self._pool.take(size_class(capacity)))

    def fork(self, sequence: Sequence, length: int, capacity: int) -> OnnxSequence:
        """Return a new sequence with the first ``length`` tokens of another.

        It is empty where its size class rotates positions differently (see ``rope.stretch``): those
        keys would be wrong.
        """
        assert isinstance(sequence, OnnxSequence) and 0 <= length <= len(sequence.tokens)
        sequence.settle()
        fork = self.open(capacity)
        if stretch(self.config, fork.capacity) == stretch(self.config, sequence.capacity):
            self.memory.copy(sequence.buffer, fork.buffer, length)
            fork.adopt(sequence.tokens[:length])
        return fork

    def release(self, sequence: Sequence) -> None:
        """Take the memory of a sequence back, which cannot be used any more."""
        assert isinstance(sequence, OnnxSequence)
        self._pool.give_back(sequence.detach())

    def why_changed(self) -> str:
        """Return why the weights are no longer those that were loaded, or ""."""
        is_changed = self.embedding.is_changed()
        return f"{DATA_FILE} was written to while it was in use" if is_changed else ""

    def close(self) -> None:
        super().close()
        self._pool.clear()
