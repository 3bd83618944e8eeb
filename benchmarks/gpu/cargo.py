"""What comes back from a borrowed machine: responses, curves and facts, in a few small files."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import subprocess
import sys
import tarfile
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from detached import State
from safetensors import SafetensorError, safe_open

from dialbench.files.loads import loads
from dialbench.neural.devices import describe, dtype_of
from dialbench.store.layout import Store

LARGEST = 15 << 20
_END_OF_LOG = 1 << 20
_GPU = ("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader")
_PACKAGES = ("torch", "numpy", "safetensors", "dialbench")


def collect(state: State, device: str, out: Path) -> list[Path]:
    """Writes facts, curves, the end of the log and all responses so far.

    `answers.tar.gz` holds the folder `answers` of the runs folder. What would be larger than a
    file may be is cut into `answers.tar.gz.0`, `.1` and so on, to be joined by `cat`.

    Returns:
        The files.
    """
    out.mkdir(parents=True, exist_ok=True)
    log = state.log.read_bytes()[-_END_OF_LOG:] if state.log.exists() else b""
    contents = {
        "facts.json": _json(facts(state, device)),
        "curves.json": _json(curves(state.runs)),
        "run.log": log,
        **_parts("answers.tar.gz", _packed(state.runs / "answers")),
    }
    for name, content in contents.items():
        (out / name).write_bytes(content)
    return [out / name for name in contents]


def facts(state: State, device: str) -> dict[str, Any]:
    """The machine, the code, the command and how every system fared."""
    return {
        **describe(device, dtype_of("auto", device)),
        "versions": {name: version(name) for name in _PACKAGES} | _platform(),
        "code_sha256": code_checksum(),
        "commit": _output("git", "rev-parse", "HEAD"),
        "gpu": _output(*_GPU),
        "command": " ".join(state.command[1:-2]),
        "began": state.began,
        "starts": state.starts,
        "deadline_seconds": state.deadline - state.began,
        "wall_seconds": time.time() - state.began,
        "peak_memory": state.peak_memory,
        "systems": systems(state.runs),
    }


def systems(runs: Path) -> dict[str, dict[str, Any]]:
    """Status, reason, notes and facts of every job that was begun, by its name."""
    return {
        str(result.job): {
            "status": result.status,
            "reason": result.reason,
            "epochs": len(result.curve),
            "notes": list(result.notes),
            "facts": dict(result.facts),
        }
        for result in Store(runs).results()
    }


def curves(runs: Path) -> dict[str, list[dict[str, float]]]:
    """Losses per epoch of every training, finished or not, by the name of its folder."""
    files = {}
    for folder in sorted(runs.glob("trained/*")):
        record = folder / "finished" / "trained.json"
        rows = loads(record.read_bytes())["curve"] if record.exists() else _rows_so_far(folder)
        files[folder.name] = rows
    return files


def _rows_so_far(folder: Path) -> list[dict[str, float]]:
    try:
        with safe_open(folder / "work" / "last.safetensors", framework="pt") as file:
            return list(loads(file.metadata()["numbers"])["curve"])
    except (OSError, SafetensorError):
        return []


def code_checksum() -> str:
    """sha256 over the installed code, the same for a checkout and for its wheel."""
    total = hashlib.sha256()
    for package in ("dialbench", "dialbench_adapters"):
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        root = Path(spec.origin).parent
        for path in sorted(root.rglob("*.py")):
            total.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def _platform() -> dict[str, str]:
    versions = {"python": platform.python_version(), "platform": platform.platform()}
    if torch.cuda.is_available():
        versions |= {"cuda": str(torch.version.cuda), "cudnn": str(torch.backends.cudnn.version())}
    return versions


def _output(*command: str) -> str:
    """What a program prints; empty where it is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def _packed(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        if folder.is_dir():
            archive.add(folder, folder.name)
    return gzip.compress(buffer.getvalue(), mtime=0)


def _parts(name: str, content: bytes) -> dict[str, bytes]:
    starts = range(0, len(content), LARGEST)
    if len(starts) == 1:
        return {name: content}
    return {f"{name}.{i}": content[start : start + LARGEST] for i, start in enumerate(starts)}


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()


def show(runs: Path, stream: Any = sys.stdout) -> None:
    """Prints a line for every training and every job."""
    for name, rows in curves(runs).items():
        last = rows[-1] if rows else {}
        loss = last.get("valid_loss")
        shown = "" if loss is None else f", valid_loss {loss:.4f}"
        print(f"training  {name}: {len(rows)} epochs{shown}", file=stream)
    for name, facts in systems(runs).items():
        reason = f": {facts['reason']}" if facts["reason"] else ""
        print(f"{facts['status']:<11} {name}{reason}", file=stream)
