"""Ctrl-C and SIGTERM end every command that takes long, wherever it is, and what it says is kept is kept."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from paretone.commands.terminal import cancelling, terminable
from paretone.models.files.checkpoints import fingerprint
from paretone.own_process import SIGNALS
from paretone.training.session import CHECKPOINT, stop_requests
from paretone.training.spoken_tokens import write_tokens
from tests.engine.training.test_companions import utterances
from tests.workload import workload

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads processor time from /proc")
PATIENCE_SECONDS = 300.0
MOST_SECONDS = 5.0
"""Processor time from a signal to the end, which other processes do not lengthen: what a step, a checkpoint and letting
go of torch take. Preparing speech went on for 15 to 60 s."""
RESOURCES = Path(__file__).parents[3] / "resources"
TRAIN = "--work WORK --export WORK/out --device cpu --threads 1 --minutes 9"


@dataclass(frozen=True)
class Case:
    """A command, and moments of its life at which a signal comes: seconds of processor time after a line."""

    command: str
    line: str = ""
    """Beginning of the line of standard error from which time is counted; ``""``: the start of the process."""
    moments: Sequence[float] = (1.0,)
    says: str = "Cancelled."
    keeps: str = ""
    """File in the work folder that is there afterwards."""


CASES = [Case(f"train draft {TRAIN}", "LM mini speaks")]
MANY = [
    Case(f"train draft --sentences 2 {TRAIN}", "step 0", says="Stopped at step ", keeps=CHECKPOINT),
    Case("bench voices --device cpu --threads 1", moments=(4.0,)),
    Case(f"train draft --sentences 2 {TRAIN}", "Training", (0.0,), "Stopped at step 0", CHECKPOINT),
    Case(f"train spade --depth 6 {TRAIN}", moments=(6.0, 20.0)),
    Case(f"train cfg-free --w 0.5 {TRAIN}", moments=(4.0, 12.0)),
    Case(f"train average-velocity {TRAIN}", moments=(12.0,)),
    Case("train voice-corpus --work WORK", moments=(1.5,)),
    Case("measure-layers", moments=(4.0, 12.0)),
    Case("measure-weights", moments=(5.0,)),
    Case("calibrate --table WORK/table.json", moments=(6.0,)),
    Case("search-grid --grid WORK/grid.json", moments=(8.0,)),
    Case("group-tokens --audio WORK/groups.wav", moments=(3.0,)),
    Case("roofline", moments=(6.0,)),
    Case("compare steps=32 steps=4", moments=(6.0,)),
    Case("samples --out WORK/samples --work WORK/work", moments=(6.0,)),
    Case("judge voice.wav", moments=(2.0,)),
    Case("export-model draft --out WORK/draft", moments=(2.0,)),
    Case("doctor", moments=(0.3,)),
    Case("speak --model f5-mini --text-file text.txt --out WORK/o.wav", moments=(2.0, 6.0), says="Cancelled"),
    Case("speak --model lm-mini --text-file text.txt --out WORK/o.wav", moments=(8.0,), says="Cancelled"),
    Case("speak --technique compilation --text Rice. --out WORK/o.wav", moments=(10.0,)),
    Case("study run WORK/study.toml", moments=(4.0, 12.0), says=""),
    Case("bench stacked", moments=(10.0,)),
    Case("bench skipping", moments=(5.0,)),
    Case("bench ssd", moments=(5.0,)),
    Case("bench omnivoice", moments=(5.0,)),
]


def _table() -> list[object]:
    cases = workload([*CASES, *MANY], CASES)
    return [
        pytest.param(one, moment, number, id=f"{one.command.split(' --')[0]} {moment:g} s {one.line} {number.name}")
        for place, one in enumerate(cases)
        for later, moment in enumerate(one.moments)
        for number in [(signal.SIGINT, signal.SIGTERM)[(place + later) % 2]]
    ]


@dataclass(frozen=True)
class Ended:
    code: int
    said: list[str]
    """Lines of standard error."""
    used: float
    """Seconds of processor time after the signal."""
    by_itself: bool
    """Whether it had done all its work."""


@pytest.mark.timeout(3 * PATIENCE_SECONDS)
@pytest.mark.parametrize(("case", "moment", "number"), _table())
def test_a_signal_ends_it_soon(tmp_path: Path, case: Case, moment: float, number: signal.Signals) -> None:
    ended = _signalled(tmp_path / "0", case, moment, number)
    tries = 1
    while ended.by_itself:  # This machine is faster.
        assert moment > 0.1, f"it ends too soon: {ended.said}"
        moment /= 2
        ended = _signalled(tmp_path / str(tries), case, moment, number)
        tries += 1
    assert ended.code == 128 + number, ended.said
    assert ended.said[-1].startswith(case.says)
    assert "Traceback" not in "".join(ended.said)
    assert not case.keeps or (tmp_path / str(tries - 1) / "work" / case.keeps).is_file()
    assert ended.used < MOST_SECONDS, f"{ended.used:.1f} s of processor time after the signal"


def _signalled(folder: Path, case: Case, moment: float, number: signal.Signals) -> Ended:
    """Run the command in ``folder`` and send it the signal at the moment."""
    work = folder / "work"
    folder.mkdir()
    words = [word.replace("WORK", str(work)) for word in case.command.split()]
    if "--work" not in words:
        work.mkdir()
    if "--sentences" in words:  # Spoken before.
        count = words[words.index("--sentences") + 1]
        base = fingerprint(RESOURCES / "models" / "lm-mini" / "model.safetensors")
        write_tokens(work / f"{base[:8]}-{count}-own-speech.npz", utterances())
    (folder / "text.txt").write_text("Rice is often served in round bowls. " * 40, encoding="utf-8")
    (folder / "voice.wav").write_bytes((RESOURCES / "voices" / "natural" / "anna.wav").read_bytes())
    if case.command.startswith("study"):
        (work / "study.toml").write_bytes((RESOURCES / "studies" / "f5-mini-guidance.toml").read_bytes())
    command = [sys.executable, "-m", "paretone", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder) as process:
        said: list[str] = []
        came = threading.Event()

        def read() -> None:
            for line in process.stderr or ():
                said.append(line)
                if line.startswith(case.line):
                    came.set()

        readers = [threading.Thread(target=read, daemon=True)]
        answer: list[str] = []
        readers.append(threading.Thread(target=lambda: answer.extend(process.stdout or ()), daemon=True))
        for reader in readers:
            reader.start()
        used = 0.0
        try:
            assert not case.line or came.wait(PATIENCE_SECONDS), said
            before = _processor_seconds(process.pid)
            since = before if case.line else 0.0
            while before < since + moment and process.poll() is None:
                time.sleep(0.05)
                before = _processor_seconds(process.pid)
            process.send_signal(number)
            if process.returncode is None:
                # Not reaped: what it has used can still be read.
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
                used = _processor_seconds(process.pid) - before
        finally:
            if process.poll() is None:
                process.kill()
        code = process.wait()
        for reader in readers:
            reader.join()
    # With its work done, a command leaves signals to the system again.
    return Ended(code, said, used, code in (0, -number) and bool(answer))


INTERRUPTED = """
import os, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "paretone.commands.terminal":
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Interrupting())
from paretone.__main__ import main
sys.exit(main())
"""


def test_a_signal_may_come_before_the_command_line_is_imported_even_with_a_closed_stream() -> None:
    """``test_speak.py`` has one for later moments, with open streams."""
    command = [sys.executable, "-c", INTERRUPTED.format(number=int(signal.SIGTERM)), "models", "--json"]
    done = subprocess.run(["sh", "-c", 'exec "$@" 1>&-', "sh", *command], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (128 + signal.SIGTERM, b"")


@pytest.mark.parametrize("number", [one for one in SIGNALS if signal.getsignal(one) is not signal.SIG_IGN])
def test_the_second_signal_interrupts_a_training_at_once(number: signal.Signals) -> None:
    with terminable(), cancelling(), stop_requests() as asked:
        signal.raise_signal(number)
        assert asked.is_set() and asked.number == number
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)


def _processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
