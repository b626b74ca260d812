"""Memory for keys and values: buffers on the CPU or on a device, and a pool that reuses them.

Knows nothing of tokens' meaning, graphs or sessions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .config import ModelConfig
from .device import Provider
from .errors import InvalidRequest

#: Tokens a buffer holds. The last has room for canvases behind a full context of 32,768.
SIZE_CLASSES = (2_048, 4_096, 8_192, 16_384, 34_816)


def size_class(tokens: int) -> int:
    """Capacity of the smallest buffer that holds ``tokens``.

    Raises:
        InvalidRequest: no buffer is that large.
    """
    for capacity in SIZE_CLASSES:
        if tokens <= capacity:
            return capacity
    raise InvalidRequest(
        f"{tokens:,} tokens are asked for; a sequence holds at most {SIZE_CLASSES[-1]:,}. "
        "Send less context."
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


class Memory(Protocol):
    def allocate(self, capacity: int) -> Buffer: ...

    def touch(self, buffer: Buffer) -> None:
        """Have the system back the whole buffer with memory now."""

    def copy(self, source: Buffer, target: Buffer, length: int) -> None:
        """Copy the first ``length`` tokens."""

    def hold(self, array: NDArray[Any]) -> Any:
        """An OrtValue of ``array`` on the device."""


class CpuMemory:
    def __init__(self, runtime: Any, config: ModelConfig, dtype: np.dtype[Any]) -> None:
        self._runtime, self._config, self._dtype = runtime, config, dtype

    def allocate(self, capacity: int) -> Buffer:
        c = self._config
        shape = (c.layers, 2, 1, c.kv_heads, capacity, c.head_dim)
        block = np.zeros(shape, self._dtype)  # pages cost nothing until they are touched
        return Buffer(capacity, [(self.hold(kv[0]), self.hold(kv[1])) for kv in block], block)

    def touch(self, buffer: Buffer) -> None:
        assert buffer.block is not None
        buffer.block.fill(0)

    def copy(self, source: Buffer, target: Buffer, length: int) -> None:
        assert source.block is not None and target.block is not None
        target.block[..., :length, :] = source.block[..., :length, :]

    def hold(self, array: NDArray[Any]) -> Any:
        return self._runtime.OrtValue.ortvalue_from_numpy(array)  # shares the array's memory


class DeviceMemory:
    """Buffers on a device numpy cannot reach; tokens are copied there by a two-node graph."""

    def __init__(
        self, runtime: Any, config: ModelConfig, dtype: np.dtype[Any], device: str, provider: str
    ) -> None:
        self._runtime, self._config, self._dtype = runtime, config, dtype
        self._device = device
        self._copier = runtime.InferenceSession(_copy_model(dtype), providers=[provider])

    def allocate(self, capacity: int) -> Buffer:
        c = self._config
        shape = [1, c.kv_heads, capacity, c.head_dim]

        def fresh() -> Any:
            return self._runtime.OrtValue.ortvalue_from_shape_and_type(
                shape, self._dtype.type, self._device, 0
            )

        return Buffer(capacity, [(fresh(), fresh()) for _ in range(c.layers)])

    def touch(self, buffer: Buffer) -> None:
        """A device backs its memory when it allocates."""

    def copy(self, source: Buffer, target: Buffer, length: int) -> None:
        keep = self._runtime.OrtValue.ortvalue_from_numpy(np.array([length], np.int64))
        fill = np.array([0, target.capacity - length], np.int64)
        padding = self._runtime.OrtValue.ortvalue_from_numpy(fill)
        for (_, old), (_, new) in zip(source.values(), target.values(), strict=True):
            binding = self._copier.io_binding()
            binding.bind_ortvalue_input("source", old)
            binding.bind_ortvalue_input("length", keep)
            binding.bind_ortvalue_input("padding", padding)
            binding.bind_ortvalue_output("target", new)
            self._copier.run_with_iobinding(binding)

    def hold(self, array: NDArray[Any]) -> Any:
        return self._runtime.OrtValue.ortvalue_from_numpy(array, self._device, 0)


def memory_on(
    runtime: Any, provider: Provider, config: ModelConfig, dtype: np.dtype[Any]
) -> Memory:
    if provider == "CUDA":
        return DeviceMemory(runtime, config, dtype, "cuda", "CUDAExecutionProvider")
    return CpuMemory(runtime, config, dtype)


def _copy_model(dtype: np.dtype[Any]) -> bytes:
    """source [1, heads, a, dim] -> its first ``length`` tokens, padded at their end."""
    from onnx import TensorProto, helper  # here: the CPU never needs it

    kind = helper.np_dtype_to_tensor_dtype(dtype)
    info = helper.make_tensor_value_info
    ints = helper.make_tensor
    graph = helper.make_graph(
        [
            helper.make_node("Slice", ["source", "zero", "length", "axis"], ["kept"]),
            helper.make_node("Pad", ["kept", "padding", "", "axis"], ["target"]),
        ],
        "copy",
        [
            info("source", kind, [1, "heads", "a", "dim"]),
            info("length", TensorProto.INT64, [1]),
            info("padding", TensorProto.INT64, [2]),
        ],
        [info("target", kind, [1, "heads", "b", "dim"])],
        initializer=[
            ints("zero", TensorProto.INT64, [1], [0]),
            ints("axis", TensorProto.INT64, [1], [2]),
        ],
    )
    opsets = [helper.make_opsetid("", 21)]
    data: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    return data


@dataclass
class Pool:
    """Released buffers, kept for reuse while they and the buffers in use fit in the budget."""

    memory: Memory
    budget_bytes: int
    bytes_per_token: int
    free: list[Buffer] = field(default_factory=list)  # oldest first
    in_use: int = 0  # tokens of capacity

    def prepare(self, capacity: int) -> None:
        """Have one buffer ready: the first touch of a new one of 2,048 tokens costs 0.1 to 0.2 s,
        which the first prompt would wait for."""
        if capacity * self.bytes_per_token <= self.budget_bytes:
            buffer = self.memory.allocate(capacity)
            self.memory.touch(buffer)
            self.free.append(buffer)

    def take(self, capacity: int) -> Buffer:
        self.in_use += capacity
        for i, buffer in enumerate(self.free):
            if buffer.capacity == capacity:
                return self.free.pop(i)
        self._shrink()
        return self.memory.allocate(capacity)

    def give_back(self, buffer: Buffer) -> None:
        self.in_use -= buffer.capacity
        self.free.append(buffer)
        self._shrink()

    def clear(self) -> None:
        self.free.clear()

    def _shrink(self) -> None:
        while self.free and self._held() > self.budget_bytes:
            self.free.pop(0)

    def _held(self) -> int:
        tokens = self.in_use + sum(buffer.capacity for buffer in self.free)
        return tokens * self.bytes_per_token
