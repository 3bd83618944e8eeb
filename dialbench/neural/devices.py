"""Devices and precisions, and their description in results."""

from __future__ import annotations

import contextlib
import platform
import re
from pathlib import Path
from typing import Any, Literal

import torch

from dialbench.errors import InputError

Precision = Literal["auto", "float32", "bfloat16", "float64"]


def resolve(name: str, *, where: str = "--device") -> str:
    """The torch device for `auto`, `cpu` or `cuda`; `auto` takes the GPU where there is one.

    Raises:
        InputError: the device is unknown or not there.
    """
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        kind = torch.device(name).type
    except RuntimeError:
        kind = ""
    if kind not in ("cpu", "cuda") or (kind == "cuda" and not torch.cuda.is_available()):
        raise InputError(
            f"device {name!r} is not available here", where=where, hint="Write auto, cpu or cuda."
        )
    return name


def dtype_of(precision: Precision, device: str) -> torch.dtype:
    """The dtype of matrix products: `auto` is bfloat16 where the hardware multiplies it."""
    if precision != "auto":
        return {"float32": torch.float32, "bfloat16": torch.bfloat16, "float64": torch.float64}[
            precision
        ]
    if device.startswith("cuda"):
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        fast = _cpu_multiplies_bfloat16()
    return torch.bfloat16 if fast else torch.float32


def _cpu_multiplies_bfloat16() -> bool:
    # torch runs bfloat16 on every CPU, but without these instructions slower than float32.
    if platform.machine() not in ("x86_64", "AMD64"):
        return False
    flags = _cpu_info()
    return "amx_bf16" in flags or "avx512_bf16" in flags


def _cpu_name() -> str:
    facts = dict(re.findall(r"^(model name|cpu family|model)\s*:\s*(.+?)\s*$", _cpu_info(), re.M))
    if "model name" not in facts:
        return platform.processor() or platform.machine()
    # Virtual machines call processors of several generations by one name.
    numbers = [facts[key] for key in ("cpu family", "model") if key in facts]
    return " ".join([facts["model name"], "/".join(numbers)]).strip()


def _cpu_info() -> str:
    """The content of /proc/cpuinfo; empty where there is none."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def autocast(device: str, dtype: torch.dtype) -> contextlib.AbstractContextManager[Any]:
    """Mixed precision for bfloat16, nothing for the full precisions.

    Weights are cast once, at their first use within; under torch.inference_mode at every use.
    """
    if dtype != torch.bfloat16:
        return contextlib.nullcontext()
    return torch.autocast(torch.device(device).type, dtype=dtype)


def matrix_dtype(weight: torch.Tensor) -> torch.dtype:
    """The dtype in which `weight` is multiplied here: its own, or that of mixed precision."""
    kind = weight.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype


def describe(device: str, dtype: torch.dtype) -> dict[str, Any]:
    """The circumstances that low-precision near-ties may depend on."""
    if device.startswith("cuda"):
        name = torch.cuda.get_device_name(torch.device(device))
    else:
        # The instructions decide the order of additions, hence the last bits of every sum.
        name = f"{_cpu_name()}, {torch.backends.cpu.get_cpu_capability()}"
    return {
        "device": f"{device} ({name})",
        "dtype": str(dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }
