"""Open weights that are worth a try, by a short name: where they are, what they do, how large.

A list to choose from. Nothing of it is fetched unless somebody asks by name. What a repository
holds today, and under which SHA-256, only its hub can say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: What they were trained to do: fill in at the cursor, or rewrite what stands around it.
Trained = Literal["infill", "next edit"]
Runs = Literal["yes", "slowly", "no"]

#: Bytes of a weight in q8; in the smallest variant for a CPU (q4) and for a GPU (q4f16); and what
#: running takes besides.
_Q8, _ON_CPU, _ON_GPU, _BESIDES = 1.2, 0.8, 1.0, 1.0e9
#: A CPU writes with at most so many weights in the time of a thought; denoising reads the whole
#: context in every step where nothing can be cached.
_FAST_WEIGHTS, _FAST_DENOISING = 2.0e9, 0.6e9


@dataclass(frozen=True, slots=True)
class Known:
    """One entry of the list."""

    name: str
    repo: str  # on the hub
    file: str  # "": the folder of safetensors
    license: str  # "": as the hub says
    weights: float  # about how many
    trained: Trained
    denoises: bool = False  # a diffusion model without a cache
    sha256: str = ""  # of ``file``, where it was known when this list was made

    @property
    def place(self) -> str:
        """Repository and file, for people."""
        return f"{self.repo}/{self.file}".rstrip("/")

    @property
    def memory(self) -> float:
        """Bytes it takes to run on a CPU as q8, about."""
        return self.weights * _Q8 + _BESIDES

    def runs(self, memory: int, provider: str) -> Runs:
        """Whether it is of use here.

        Args:
            memory: bytes of this machine's, or of its GPU.
        """
        gpu = provider != "CPU"
        if self.weights * (_ON_GPU if gpu else _ON_CPU) + _BESIDES > 0.9 * memory:
            return "no"
        fast = _FAST_DENOISING if self.denoises else _FAST_WEIGHTS
        return "yes" if gpu or self.weights <= fast else "slowly"


_QWEN = "Qwen/Qwen2.5-Coder-"
_SWEEP = "sweepai/sweep-next-edit-"
KNOWN: tuple[Known, ...] = (
    Known(
        "sweep-next-edit-0.5b", f"{_SWEEP}0.5B", "sweep-next-edit-0.5b.q8_0.gguf", "Apache-2.0",
        0.5e9, "next edit",
        sha256="2d2f5ca856765a086d4ee3d0dc4d30358e9d562e36480e0c754240e9cf45ed64",
    ),
    Known(
        "sweep-next-edit-1.5b", f"{_SWEEP}1.5B", "sweep-next-edit-1.5b.q8_0.v2.gguf", "Apache-2.0",
        1.5e9, "next edit",
        sha256="1321ea5e5d7529e60f9770c6a0b3a965f89542d16cf4ae51bab267f6a88150da",
    ),
    Known("sweep-next-edit-7b", f"{_SWEEP}v2-7B", "", "", 7.6e9, "next edit"),
    Known("zeta-2", "zed-industries/zeta-2", "", "Apache-2.0", 8.3e9, "next edit"),
    Known("zeta-2.1", "zed-industries/zeta-2.1", "", "Apache-2.0", 8.3e9, "next edit"),
    Known("qwen2.5-coder-7b", f"{_QWEN}7B", "", "Apache-2.0", 7.6e9, "infill"),
    Known("mellum-4b", "JetBrains/Mellum-4b-base", "", "Apache-2.0", 4.0e9, "infill"),
    Known("seed-coder-8b", "ByteDance-Seed/Seed-Coder-8B-Base", "", "MIT", 8.3e9, "infill"),
    Known(
        "nemotron-labs-diffusion-3b", "nvidia/Nemotron-Labs-Diffusion-3B", "", "", 3.4e9, "infill"
    ),
    Known("open-dcoder-0.5b", "fredzzp/open-dcoder-0.5B", "", "", 0.5e9, "infill", True),
    Known("dreamon-7b", "Dream-org/DreamOn-v0-7B", "", "Apache-2.0", 7.6e9, "infill", True),
)  # fmt: skip


def known(name: str) -> Known | None:
    """The entry of this name."""
    return next((entry for entry in KNOWN if entry.name == name), None)
