"""Opens one graph with onnxruntime: on which provider, with how many threads, and what a failure to
load means. Knows nothing of what a graph computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..config import ModelConfig
from ..errors import InstallError, SettingsError, WeightsError
from ..network.quantize import HALF
from .device import check_provider, check_runs
from .provider_probe import network_like
from .providers import PROVIDERS, Provider, name_of, open_on

#: Microseconds a thread waits for work before it sleeps.
SPIN_US = 20


def choose_provider(
    runtime: Any, wanted: str | None, variant: str, config: ModelConfig
) -> Provider:
    """The provider to run on, tried out where it is not the CPU.

    Args:
        wanted: one of PROVIDERS in any case; None: CUDA for half precision, the CPU for the rest.

    Raises:
        InstallError: it does not run here.
        SettingsError: there is no such provider, or it does not run this variant.
    """
    name = (wanted or ("CUDA" if variant in HALF else "CPU")).upper()
    if name not in PROVIDERS:
        raise SettingsError(f"Unknown provider {wanted!r}: choose one of {', '.join(PROVIDERS)}.")
    if name != "CPU":
        check_runs(variant, name)
        check_provider(runtime, name, variant, network_like(config))
    return name


def open_session(runtime: Any, path: Path, provider: Provider, threads: int) -> Any:
    """onnxruntime's session of a graph.

    Raises:
        InstallError: the provider stopped working.
        WeightsError: the graph does not load.
    """
    try:
        session = open_on(runtime, path, provider, _options(runtime, threads), threads)
    except InstallError:
        raise
    except Exception as error:  # onnxruntime raises many kinds, none of them documented
        raise WeightsError(
            f"onnxruntime cannot load {path}: {error}. Run 'redraft model pull' again; if that "
            "does not help, 'redraft doctor' says more."
        ) from error
    if name_of(provider) not in session.get_providers():  # onnxruntime falls back in silence
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
