"""Blocks in time for playback: the real synthesis of a small model by a clock that only its steps and its decoder move.

Nothing here depends on how fast the machine is that runs it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.models import load_model
from paretone.models.base import Synthesis
from paretone.models.catalogue import entry, voice
from paretone.models.families.pacing import FEWEST_STEPS
from paretone.models.kernels.fused_masked import MaskedRequest, MaskedRun
from paretone.models.minis.omni_mini import OmniMiniSpeech, ResidualGridDecoder
from paretone.observer import Observer
from paretone.sampling.demasking import Guide
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from tests.engine.bench.test_masked import report_of
from tests.engine.small_omni_mini import write_model
from tests.engine.speaking import stream
from tests.workload import crossed, only_in_full, workload

TEXT = "The birch canoe slid on the smooth planks, while rice is often served in round bowls."
TOLD = "playback would have paused"


@dataclass
class Machine:
    """A clock, and what a pass over a row and decoding a frame take of it."""

    row: float
    """Seconds."""
    frame: float = 0.0005
    slower: Callable[[float], float] = lambda now: 1.0
    """By what factor a pass that begins then takes longer."""
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Heard:
    """A synthesis as someone who plays it meets it."""

    synthesis: Synthesis
    pieces: list[tuple[float, float]] = field(default_factory=list)
    """When each came, and how long it lasts."""

    @property
    def waits(self) -> float:
        """Seconds in which playback stands still, computed independently of the engine."""
        ends, waited = self.pieces[0][0], 0.0
        for came, lasts in self.pieces:
            waited += max(came - ends, 0.0)
            ends = max(ends, came) + lasts
        return waited

    @property
    def steps(self) -> list[int]:
        return [block.steps for one in self.synthesis.trace.demasking.passages for block in one.blocks]

    @property
    def told(self) -> bool:
        return any(TOLD in note for note in self.synthesis.notes)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> OmniMiniSpeech:
    return load_model("omni-mini", folder=str(write_model(tmp_path_factory.mktemp("paced") / "model")), device="cpu")


@pytest.fixture
def speak(model: OmniMiniSpeech, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Heard]:
    machines: list[Machine] = []
    scores, push = MaskedRun.scores, ResidualGridDecoder.push

    def timed_scores(run: MaskedRun, codes: torch.Tensor, first: int, last: int, guide: Guide) -> torch.Tensor:
        machine, found = machines[-1], scores(run, codes, first, last, guide)
        machine.now += run.rows_of_last(guide) * machine.row * machine.slower(machine.now)
        return found

    def timed_push(decoder: ResidualGridDecoder, codes: torch.Tensor) -> np.ndarray:
        machines[-1].now += codes.shape[1] * machines[-1].frame
        return push(decoder, codes)

    monkeypatch.setattr(MaskedRun, "scores", timed_scores)
    monkeypatch.setattr(ResidualGridDecoder, "push", timed_push)

    def speaking(machine: Machine, observer: object = None, by_sentence: bool = False, **knobs: object) -> Heard:
        machines.append(machine)
        monkeypatch.setattr(model, "clock", machine)
        options = entry("omni-mini").options_with(steps=16, by_sentence=by_sentence)
        setting = Setting("omni-mini", options).with_technique(UsedTechnique("blockwise", Values(knobs)))
        text = TEXT.replace(", ", ". ") if by_sentence else TEXT
        speech = stream(model, text, voice("", "omni-mini"), setting, (), observer or Observer())
        pieces = []
        while True:
            try:
                piece = next(speech)
            except StopIteration as end:
                return Heard(end.value, pieces)
            pieces.append((machine.now, len(piece.samples) / 24000))

    return speaking


@pytest.mark.parametrize(
    ("row", "text_every", "ahead"), workload(crossed([0.00002, 0.00006, 0.0002], [1, 3, 4], [0, 16]), [(0.0002, 3, 16)])
)
def test_playback_never_waits_with_time(speak: Callable[..., Heard], row: float, ahead: int, text_every: int) -> None:
    heard = speak(Machine(row), look_ahead=ahead, text_every=text_every)
    assert len(heard.pieces) > 3 and heard.waits == 0
    assert heard.synthesis.measurements.pause_seconds == 0 and not heard.told
    assert all(FEWEST_STEPS <= steps <= 16 for steps in heard.steps)
    chance = np.random.default_rng(1)
    assert speak(Machine(0.0001, slower=lambda now: chance.uniform(0.6, 1.5))).waits == 0, "steps of uneven length"


def test_time_that_is_there_is_used(speak: Callable[..., Heard]) -> None:
    fast, slow = (speak(Machine(row)).steps for row in (0.00001, 0.0003))
    assert fast[0] == slow[0] == 4 and set(fast[1:]) == {16} and sum(slow) < sum(fast)
    # What there is ahead grows, and steps with it.
    assert slow[1] < max(slow[2:])


@pytest.mark.parametrize("by_sentence", workload([False, True], [True]))
def test_a_machine_that_slows_down_in_the_middle_cuts_blocks_short(speak: Callable[..., Heard], by_sentence: bool):
    steady = speak(Machine(0.00022), by_sentence=by_sentence)
    # Within the second block every pass begins to take 1.8 times as long.
    begun = sum(steady.pieces[0]) * 0.5 + steady.pieces[0][0] * 0.5
    slowed = speak(Machine(0.00022, slower=lambda now: 1.8 if now > begun else 1.0), by_sentence=by_sentence)
    assert slowed.waits == 0 and not slowed.told and sum(slowed.steps) < sum(steady.steps)


def test_a_machine_that_is_too_slow_or_stalls_pauses_and_says_so(speak: Callable[..., Heard]) -> None:
    heard = speak(Machine(0.003))
    assert set(heard.steps[1:]) == {FEWEST_STEPS} and heard.waits > 0.1
    assert heard.synthesis.measurements.pause_seconds == pytest.approx(heard.waits) and heard.told
    steady = speak(Machine(0.00006))
    stalled: list[float] = []

    def once(now: float) -> float:
        if stalled or now < steady.pieces[1][0] + 0.01:
            return 1.0
        stalled.append(now)
        return 400.0

    heard = speak(Machine(0.00006, slower=once))
    assert heard.synthesis.measurements.pause_seconds == pytest.approx(heard.waits) and heard.waits > 0.1 and heard.told
    assert min(heard.steps[1:]) < 16, "the block in which it happened is cut short"


def codes(heard: Heard) -> list[np.ndarray]:
    return [one.codes for one in heard.synthesis.trace.demasking.passages]


def test_a_seed_is_a_take_where_steps_do_not_follow_measured_times(speak: Callable[..., Heard]) -> None:
    for knobs in workload(({"adaptive": False}, {"adaptive": False, "step_time": 40.0}), ({"adaptive": False},)):
        first, second = (speak(Machine(row), **knobs) for row in (0.00002, 0.0003))
        assert first.steps == second.steps
        assert all(np.array_equal(*pair) for pair in zip(codes(first), codes(second), strict=True)) and first.waits == 0
        # That machine is slower than what was assumed.
        assert second.told
    first, second = (speak(Machine(row)) for row in (0.00002, 0.0003))
    assert first.steps != second.steps
    # What does not depend on it: how long it is, and what is heard first.
    one, other = codes(first)[0], codes(second)[0]
    assert one.shape == other.shape and np.array_equal(one[:, :24], other[:, :24])
    assert any("another take of the same seed may differ" in note for note in first.synthesis.notes)


def test_each_block_is_begun_once_on_what_it_sees(speak: Callable[..., Heard], monkeypatch: pytest.MonkeyPatch):
    begun: list[int] = []
    make = MaskedRun.__init__

    def counted(run: MaskedRun, network: object, request: MaskedRequest, guidance: float) -> None:
        begun.append(request.frames)
        make(run, network, request, guidance)

    monkeypatch.setattr(MaskedRun, "__init__", counted)
    passages = speak(Machine(0.0001), look_ahead=16).synthesis.trace.demasking.passages
    frames = [one.codes.shape[1] for one in passages]
    seen = [min(block.end + 16, whole) for one, whole in zip(passages, frames, strict=True) for block in one.blocks]
    assert begun == seen and begun[0] < frames[0]
    begun.clear()
    speak(Machine(0.0001), look_ahead=0)
    assert begun == frames, "with all in sight, one run serves every block"


@only_in_full("speech")
def test_first_audio_against_the_whole(tmp_path: Path) -> None:
    more = ("--sentences", "0", "--first-block", "8", "--block", "8", "--first-steps", "2", "--later-steps", "2")
    report, rows = report_of(write_model(tmp_path / "model"), "omnivoice-first-audio", *more)
    exactly = "blockwise, text and reference at every step"
    assert list(rows) == ["whole canvas", "sentence by sentence", "blockwise", exactly]
    (blocks,) = rows["blockwise"]
    assert blocks["first audio p50 (s)"] < blocks["whole p50 (s)"]
    assert 0 <= blocks["playback waits p50 (s)"] <= blocks["longest (s)"]
    assert rows["whole canvas"][0]["takes that wait"] == "0 of 2"
    assert report["headline"] > 0
