"""Memory for keys and values: buffers on the CPU or on a device, and a pool that reuses them."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from ..config import ModelConfig
from ..errors import InvalidRequest
from .huge_pages import small_zeros

#: Tokens a buffer holds: each holds one of the context budgets (``budget.CHOICES``) and the answer
#: and canvases behind it, 256 tokens at least. Without that room a full context would take a buffer
#: of twice its size, and one of 8,192 tokens would be rotated as if it were twice as long.
SIZE_CLASSES = (1_280, 2_304, 4_352, 8_448, 16_896, 34_816)

#: Tokens at most where every step reads all of them: attention takes memory by their square.
MOST_TOKENS = SIZE_CLASSES[3]

#: Bytes left free beside a new buffer: for the passes over it, and for the rest of the machine.
RESERVE = 256 << 20


def size_class(tokens: int) -> int:
    """Return the capacity of the smallest buffer that holds ``tokens``.

    Raises:
        InvalidRequest: no buffer is that large.
    """
    for capacity in SIZE_CLASSES:
        if tokens <= capacity:
            return capacity
    raise InvalidRequest(
        f"{tokens:,} tokens are asked for; a sequence holds at most {SIZE_CLASSES[-1]:,}. "
        "Send less context, or ask for a shorter answer."
    )


def return_freed() -> None:
    """Give memory that was freed back to the system.

    glibc keeps it: after a vocabulary of 151,936 tokens was read 110 MB, for good. Elsewhere
    nothing happens.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _no_memory(capacity: int, size: int, why: str) -> InvalidRequest:
    return InvalidRequest(
        f"A context of up to {capacity:,} tokens needs {size / 2**20:,.0f} MB of memory for keys "
        f"and values: {why}. Set a smaller context_tokens, or close other programs."
    )


@dataclass
class Buffer:
    """Keys and values of every layer, each an OrtValue [1, kv_heads, capacity, head_dim]."""

    capacity: int
    layers: list[tuple[Any, Any]]
    block: NDArray[Any] | None = None  # on the CPU: all of them, [layers, 2, 1, heads, cap, dim]

    def values(self) -> Iterator[tuple[str, Any]]:
        for layer, (key, value) in enumerate(self.layers):
            yield f"key.{layer}", key
            yield f"value.{layer}", value


class KVMemory:
    """Buffers in the memory of the machine."""

    def __init__(self, runtime: Any, config: ModelConfig, dtype: np.dtype[Any]) -> None:
        self._runtime, self._config, self._dtype = runtime, config, dtype

    def allocate(self, capacity: int) -> Buffer:
        """Return a new buffer; what is never written to takes no memory.

        More than is free is refused: a system lends more, and ends the process that uses it.

        Raises:
            InvalidRequest: there is not so much memory; says what to set.
        """
        c = self._config
        shape = (c.layers, 2, 1, c.kv_heads, capacity, c.head_dim)
        size, free = self._size(capacity), psutil.virtual_memory().available
        if size + RESERVE > free:
            raise _no_memory(capacity, size, f"{free / 2**20:,.0f} MB are free")
        block = small_zeros(shape, self._dtype)
        return Buffer(capacity, [(self.hold(kv[0]), self.hold(kv[1])) for kv in block], block)

    def touch(self, buffer: Buffer) -> None:
        """Have the system back the whole buffer with memory now."""
        assert buffer.block is not None
        buffer.block.fill(0)

    def copy(self, source: Buffer, target: Buffer, length: int) -> None:
        """Copy the first ``length`` tokens."""
        assert source.block is not None and target.block is not None
        target.block[..., :length, :] = source.block[..., :length, :]

    def hold(self, array: NDArray[Any]) -> Any:
        """Return an OrtValue that shares the memory of ``array``."""
        return self._runtime.OrtValue.ortvalue_from_numpy(array)

    def _size(self, capacity: int) -> int:
        c = self._config
        return 2 * c.layers * c.kv_heads * c.head_dim * capacity * self._dtype.itemsize


class DeviceMemory(KVMemory):
    """Buffers on a device, which backs its memory when it allocates."""

    def __init__(
        self, runtime: Any, config: ModelConfig, dtype: np.dtype[Any], device: str
    ) -> None:
        super().__init__(runtime, config, dtype)
        self._device = device

    def allocate(self, capacity: int) -> Buffer:
        shape = [1, self._config.kv_heads, capacity, self._config.head_dim]

        def fresh() -> Any:
            return self._runtime.OrtValue.ortvalue_from_shape_and_type(
                shape, self._dtype.type, self._device, 0
            )

        try:
            return Buffer(capacity, [(fresh(), fresh()) for _ in range(self._config.layers)])
        except Exception as error:  # onnxruntime raises many kinds, none of them documented
            why = str(error).strip().splitlines()[0]
            raise _no_memory(capacity, self._size(capacity), why) from error

    def touch(self, buffer: Buffer) -> None:
        pass

    def copy(self, source: Buffer, target: Buffer, length: int) -> None:
        """Copy the first ``length`` tokens through the memory of the machine."""
        for (_, old), (_, new) in zip(source.values(), target.values(), strict=True):
            whole = np.zeros(new.shape(), self._dtype)  # [1, kv_heads, capacity, head_dim]
            whole[:, :, :length] = old.numpy()[:, :, :length]
            new.update_inplace(whole)

    def hold(self, array: NDArray[Any]) -> Any:
        """Return an OrtValue of ``array`` on the device."""
        return self._runtime.OrtValue.ortvalue_from_numpy(array, self._device, 0)


@dataclass
class Pool:
    """Released buffers, kept for reuse while they and the buffers in use fit in the budget.

    Buffers larger than the whole budget are outside it: they are never kept.
    """

    memory: KVMemory
    budget_bytes: int
    bytes_per_token: int
    free: list[Buffer] = field(default_factory=list)  # oldest first
    in_use: int = 0  # tokens of capacity, within the budget

    def prepare(self, capacity: int) -> None:
        """Have one buffer ready.

        The first touch of a new one of 2,048 tokens costs 0.1 to 0.2 s, for which the first prompt
        would wait.
        """
        if not self._oversized(capacity) and all(b.capacity != capacity for b in self.free):
            buffer = self.memory.allocate(capacity)
            self.memory.touch(buffer)
            self.free.append(buffer)

    def take(self, capacity: int) -> Buffer:
        """Return a buffer of a capacity, a free one if there is one.

        Raises:
            InvalidRequest: there is not so much memory; says what to set.
        """
        for i, buffer in enumerate(self.free):
            if buffer.capacity == capacity:
                self.in_use += capacity
                return self.free.pop(i)
        if self._oversized(capacity):
            self.free.clear()  # every bit of memory may be needed
            return self.memory.allocate(capacity)
        self.in_use += capacity
        self._shrink()
        try:
            return self.memory.allocate(capacity)
        except BaseException:
            self.in_use -= capacity
            raise

    def give_back(self, buffer: Buffer) -> None:
        if not self._oversized(buffer.capacity):
            self.in_use -= buffer.capacity
            self.free.append(buffer)
            self._shrink()

    def limit(self, budget_bytes: int) -> None:
        """Set another budget."""
        assert not self.in_use, "buffers in use were counted by the old budget"
        self.budget_bytes = budget_bytes
        self._shrink()

    def clear(self) -> None:
        self.free.clear()

    def _shrink(self) -> None:
        while self.free and self._held() > self.budget_bytes:
            self.free.pop(0)

    def _oversized(self, capacity: int) -> bool:
        return capacity * self.bytes_per_token > self.budget_bytes

    def _held(self) -> int:
        tokens = self.in_use + sum(buffer.capacity for buffer in self.free)
        return tokens * self.bytes_per_token
