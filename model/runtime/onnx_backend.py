"""Runs a model folder with onnxruntime: the serving implementation of ``backend.py``.

Keys and values live in preallocated buffers of a few sizes, bound as past and present of the same
graph, so a denoise step copies no cache and rolling back is only counting. Knows nothing of
prompts, of denoising schedules or of where the folder came from.

One backend, its sequences included, serves one thread at a time.
"""

from __future__ import annotations

from pathlib import Path

from ..config import ModelConfig
from ..errors import WeightsError
from ..network.quantize import HALF
from ..network.rope import stretch
from .backend import Sequence
from .installed import import_onnxruntime
from .kv_memory import Pool, size_class
from .machine import default_threads
from .mapped_files import MappedFiles
from .onnx_graphs import DATA_FILE, Graphs, described
from .onnx_sequence import OnnxSequence
from .onnx_session import check_runs

#: Bytes of KV buffers kept for reuse after they were released.
DEFAULT_KV_BYTES = 1 << 30


class OnnxBackend:
    """One model folder on one device.

    Args:
        folder: as ``materialise`` wrote it; where there is a manifest, files are compared with it.
        provider: in any case, not checked here (see :func:`device.choose`); None: CUDA for half
            precision, the CPU for the rest.
        threads: None: all physical cores this process may use.
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
        config, about = described(folder)
        self._mapped = _mapped(folder)
        variant = str(about.get("variant"))
        chosen = (provider or ("CUDA" if variant in HALF else "CPU")).upper()
        if chosen != "CPU":  # whose graphs of half precision are compared with CUDA's
            check_runs(variant, chosen)
        self.graphs = Graphs(folder, config, about, runtime, chosen, threads or default_threads())
        self._pool = Pool(self.graphs.memory, kv_bytes, self.bytes_per_token)

    @property
    def config(self) -> ModelConfig:
        return self.graphs.config

    @property
    def variant(self) -> str:
        return self.graphs.variant

    @property
    def provider(self) -> str:
        return self.graphs.provider

    @property
    def bytes_per_token(self) -> int:
        c = self.config
        return 2 * c.layers * c.kv_heads * c.head_dim * self.graphs.dtype.itemsize

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
        return OnnxSequence(self.graphs, self._pool.take(size_class(capacity)))

    def fork(self, sequence: Sequence, length: int, capacity: int) -> OnnxSequence:
        """A new sequence with the first ``length`` tokens of another; empty where its size class
        rotates positions differently (see ``rope.stretch``): those keys would be wrong."""
        assert isinstance(sequence, OnnxSequence) and 0 <= length <= len(sequence.tokens)
        sequence.settle()
        fork = self.new_sequence(capacity)
        if stretch(self.config, fork.capacity) == stretch(self.config, sequence.capacity):
            self.graphs.memory.copy(sequence.buffer, fork.buffer, length)
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
        self.graphs.interrupt(True)

    def resume(self) -> None:
        self.graphs.interrupt(False)

    def close(self) -> None:
        self.graphs.close()
        self._pool.clear()
        self._mapped.close()


def _mapped(folder: Path) -> MappedFiles:
    try:
        return MappedFiles([folder / DATA_FILE])
    except OSError as error:
        raise WeightsError(
            f"{folder / DATA_FILE} cannot be read: {error.strerror}. Run 'redraft model pull' "
            "again."
        ) from error
