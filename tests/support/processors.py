"""Skips of tests that need instructions of the processor."""

from __future__ import annotations

import pytest
from redraft.model.runtime.machine import import_onnxruntime, int8_is_exact


def skip_where_inexact(variant: str) -> None:
    """Skip the test if sums of products of bytes overflow here, as they do without VNNI."""
    if variant == "int8" and not int8_is_exact(import_onnxruntime()):
        pytest.skip("int8 saturates on this processor: it multiplies bytes without VNNI")
