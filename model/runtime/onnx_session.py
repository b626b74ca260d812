"""Opens one graph with onnxruntime: on which provider, with how many threads, and what a failure to
load means. Knows nothing of what a graph computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import InstallError, SettingsError, WeightsError
from ..network.quantize import HALF, check_variant
from .installed import offered

#: Microseconds a thread waits for work before it sleeps.
SPIN_US = 20


def check_runs(variant: str, provider: str) -> None:
    """Check that a provider can run a variant.

    Raises:
        SettingsError: the variant is unknown, or not for this provider.
    """
    check_variant(variant)
    if (variant in HALF) != (provider == "CUDA"):
        fitting = " or ".join(HALF) if provider == "CUDA" else "int8, q8, q4 or fp32"
        raise SettingsError(f"The variant {variant} does not run on {provider}: choose {fitting}.")


def open_session(runtime: Any, path: Path, provider: str, threads: int) -> Any:
    """Return onnxruntime's session of a graph; the CPU runs the operators a provider does not take.

    Raises:
        InstallError: onnxruntime has no such provider, or it stopped working.
        WeightsError: the graph does not load.
    """
    names = offered(runtime)
    if provider not in names:
        raise InstallError(
            f"{provider} cannot be used: the installed onnxruntime has no such provider."
        )
    used = list(dict.fromkeys((names[provider], names["CPU"])))
    try:
        session = runtime.InferenceSession(str(path), _options(runtime, threads), providers=used)
    except Exception as error:  # onnxruntime raises many kinds, none of them documented
        raise WeightsError(
            f"onnxruntime cannot load {path}: {error}. Run 'redraft model pull' again; if that "
            "does not help, 'redraft doctor' says more."
        ) from error
    if names[provider] not in session.get_providers():  # onnxruntime falls back in silence
        raise InstallError(
            f"{provider} stopped working while {path.name} was loaded: its memory may be "
            "full. Close programs that use it, or choose the provider cpu with the variant int8."
        )
    return session


def _options(runtime: Any, threads: int) -> Any:
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    # Threads that spin take the cores from the editor, and from each other: where another
    # program held one of two cores, a denoise step took 93 ms with the default and 59 ms with
    # this, which still bridges the gaps between two parallel operators.
    options.add_session_config_entry("session.intra_op.spin_duration_us", str(SPIN_US))
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return options
