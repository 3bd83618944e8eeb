"""What a GPU borrowed for a quarter of an hour shall do, in commands of a few minutes each.

    python3 benchmarks/gpu/lease.py smoke --out "$OUT"
    python3 benchmarks/gpu/lease.py throughput --out "$OUT"
    python3 benchmarks/gpu/lease.py train --deadline 1200 --seconds 300 --out "$OUT" -- --data DATA
    python3 benchmarks/gpu/lease.py train --seconds 570 --out "$OUT"

`smoke` trains every system for a moment on the invented corpus, and compares losses and greedy
responses with those of the CPU. `throughput` measures speed at the paper preset. `train` runs
`dialbench run` with what stands behind `--`, all systems at once, and leaves it running when the
command ends; the next `train` finds it, starts it again if it died, and waits. Once the deadline
has come, counted from the first `train`, the best epoch of every system answers. Every `train`
brings back what there is by then; `tar xz` puts the responses into a runs folder, where the same
`dialbench run` scores them on any machine (QUEUE.md). Without arguments behind `--`:
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from detached import State

NEEDED = ("click", "filelock", "numpy", "pydantic", "rich", "safetensors", "torch", "dialbench")
SUITE = ["--suite", "paraformer-1", "--preset", "paper"]
ELEVEN = (
    "seq2seq,hred,vhred,vhcr,transformer,cvae,svt,gpt2,rl-transformer,paraformer-k,paraformer-n"
)
HOPPER = 989e12  # dense bfloat16 FLOP/s that the data sheets of H100 and H200 (SXM) give
_RESTARTS = 3
_PAUSE = 2.0


def main() -> None:
    """Does one of the three."""
    options, behind = _divided(sys.argv[1:])
    arguments = _parser().parse_args(options)
    arguments.arguments = behind
    lacking = [name for name in NEEDED if find_spec(name) is None]
    if lacking:
        raise SystemExit(f"this machine lacks {', '.join(lacking)}: carry their wheels")
    from dialbench.neural.devices import resolve

    arguments.device = resolve(arguments.device)
    arguments.out.mkdir(parents=True, exist_ok=True)
    arguments.do(arguments)


def _divided(texts: list[str]) -> tuple[list[str], list[str]]:
    """What stands before `--` and behind it, which argparse takes from subcommands."""
    place = texts.index("--") if "--" in texts else len(texts)
    return texts[:place], texts[place + 1 :]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=f"{__doc__}{' '.join(SUITE)}.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--out", type=Path, required=True, help="folder of what comes back")
    common.add_argument("--work", type=Path, default=Path("/tmp/dialbench-lease"))  # noqa: S108
    common.add_argument("--device", default="cuda", help="auto, cpu or cuda")
    common.add_argument("--jobs", type=int, default=11, help="systems at once, a process each")
    commands = parser.add_subparsers(required=True)
    smoke_parser = commands.add_parser("smoke", parents=[common], help="every system for a moment")
    smoke_parser.add_argument("--models", default="all")
    smoke_parser.add_argument("--seconds", type=float, default=110.0, help="for all of it")
    smoke_parser.set_defaults(do=smoke)
    speed = commands.add_parser("throughput", parents=[common], help="speed at the paper preset")
    speed.add_argument("--models", default=ELEVEN)
    speed.add_argument("--preset", default="paper")
    speed.add_argument("--peak", type=float, default=HOPPER, help="bfloat16 FLOP/s of the device")
    speed.add_argument("--seconds", type=float, default=3.0, help="of training, a system")
    speed.add_argument("--examples", type=int, default=20_000)
    speed.add_argument("--answers", type=int, default=256)
    speed.set_defaults(do=throughput)
    training = commands.add_parser("train", parents=[common], help="train, answer, bring back")
    training.add_argument("--seconds", type=float, required=True, help="of this command")
    training.add_argument("--deadline", type=float, help="seconds of training in all commands")
    training.set_defaults(do=train)
    return parser


def smoke(arguments: argparse.Namespace) -> None:
    """Trains and answers on the device, then compares with the CPU."""
    import agreement

    end = time.time() + arguments.seconds
    runs, asked = arguments.work / "smoke", agreement.request(arguments.models)
    limits = {"train": asked.limit_train, "test": asked.limit_test}
    run = [sys.executable, "-m", "dialbench", "run", "--models", asked.models]
    run += [text for part, n in limits.items() for text in (f"--limit-{part}", str(n))]
    run += ["--device", arguments.device, "--jobs", str(arguments.jobs), "--out", str(runs)]
    run += ["--answers-only", "--progress", "plain"]
    with (arguments.out / "smoke.log").open("wb") as log, suppress(subprocess.TimeoutExpired):
        most = 0.7 * arguments.seconds
        subprocess.run(run, stdout=log, stderr=log, check=False, timeout=most)
    report = agreement.compare_all(
        runs, arguments.device, arguments.models, arguments.jobs, end - time.time()
    )
    (arguments.out / "agreement.json").write_text(json.dumps(report, indent=1) + "\n")
    print(agreement.table(report))


def throughput(arguments: argparse.Namespace) -> None:
    """Runs benchmarks/systems.py for one short round."""
    script = Path(__file__).parents[1] / "systems.py"
    names = ("models", "preset", "peak", "seconds", "examples", "answers", "device")
    options = [text for name in names for text in (f"--{name}", str(getattr(arguments, name)))]
    out = ["--out", str(arguments.out / "throughput.json"), "--rounds", "1"]
    done = subprocess.run([sys.executable, str(script), *options, *out], check=False)
    print((arguments.out / "throughput.md").read_text() if not done.returncode else "")


def train(arguments: argparse.Namespace) -> None:
    """Starts the run or finds it, waits as long as it may, and brings back what there is."""
    from cargo import collect, show
    from detached import State

    end = time.time() + arguments.seconds
    asked = arguments.arguments
    if asked or not (arguments.work / "lease.json").exists():
        options = {argument.partition("=")[0] for argument in asked}
        named = asked if options & {"--suite", "--models"} else [*SUITE, *asked]
        asked = [*named, "--device", arguments.device, "--jobs", str(arguments.jobs)]
    state = State.of(arguments.work, asked, arguments.deadline)
    _watch(state, end - _for_collecting(arguments.seconds))
    state.save()
    print("still running" if state.running() else "not running")
    show(state.runs)
    for file in collect(state, arguments.device, arguments.out):
        print(f"wrote {file}")


def _for_collecting(seconds: float) -> float:
    return min(15.0, 0.1 * seconds)


def _watch(state: State, end: float) -> None:
    """Starts what does not run, again if it is killed, and waits for its end or ours."""
    for _ in range(_RESTARTS):
        if state.finished:
            return
        process = state.start()
        while time.time() < end and (state.running() if process is None else _goes_on(process)):
            state.peak_memory = max(state.peak_memory, _memory_in_use())
            time.sleep(min(_PAUSE, max(0.0, end - time.time())))
        if time.time() >= end:
            return
        if process is not None and process.returncode >= 0:
            state.finished = process.returncode == 0
            return


def _goes_on(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is None


def _memory_in_use() -> int:
    """Bytes of the GPU that all processes hold."""
    import torch

    if not torch.cuda.is_available():
        return 0
    free, total = torch.cuda.mem_get_info()
    return total - free


if __name__ == "__main__":
    main()
