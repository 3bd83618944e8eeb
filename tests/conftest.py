"""What all tests share: where the real corpora are, and disks that refuse."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long a test takes says nothing about the code: it may import a library, on a busy machine.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

ROOT = Path(__file__).resolve().parent.parent


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a case with bytes by its parameter, not by the bytes.

    Workers must collect the same names, and a packed file holds the second at which it was packed.
    """
    return argname if isinstance(val, bytes) else None


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real corpora; the test is skipped where it is missing.

    With DIALBENCH_REQUIRE_DATA set (as in CI) a missing folder is a failure instead.
    """
    folder = Path(os.environ.get("DIALBENCH_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "dailydialog").is_dir():
        reason = f"no corpora in {folder}: set DIALBENCH_DATA to the folder that holds them"
        if os.environ.get("DIALBENCH_REQUIRE_DATA"):
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


@pytest.fixture(autouse=True)
def _no_embedded_judge(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of its own tests, as judging would take most of their time."""
    if "nli" not in request.path.parts:
        monkeypatch.setattr("dialbench.nli.embedded._PACKAGE", "no_such_package")


def _mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"this machine does not let the test mount a disk: {done.stderr.strip()}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """The root of a disk of 1 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    try:
        _mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk))
    except FileNotFoundError:
        pytest.skip("this machine has no mount command")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.fixture
def lock_disk(small_disk: Path) -> Callable[[], None]:
    """Makes the small disk read-only from now on."""
    return lambda: _mount("-o", "remount,ro", str(small_disk))


@dataclass(frozen=True)
class Finished:
    """The exit code of a command, and what it printed."""

    code: int
    out: str
    err: str


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Finished]:
    """Runs the command line inside the test's process, as `dialbench ARGUMENTS` would."""
    from dialbench.cli import main

    def run(*arguments: object) -> Finished:
        monkeypatch.setattr("sys.argv", ["dialbench", *map(str, arguments)])
        before = signal.getsignal(signal.SIGTERM)
        try:
            with monkeypatch.context() as inside:
                # --data sets it for the whole process.
                inside.setenv("DIALBENCH_DATA", os.environ.get("DIALBENCH_DATA", ""))
                with pytest.raises(SystemExit) as ended:
                    main()
        finally:
            signal.signal(signal.SIGTERM, before)
        captured = capsys.readouterr()
        return Finished(int(ended.value.code or 0), captured.out, captured.err)

    return run
