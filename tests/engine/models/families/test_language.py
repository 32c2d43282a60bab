"""Language models: what a synthesis gives, token by token, and how far ahead of playback it computes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.errors import Cancelled, DeviceError, PlainError, SettingError
from paretone.models.base import flow_model
from paretone.models.catalogue import voice
from paretone.models.families.pacing import FEWEST_STEPS, AssumedPace, Pace
from paretone.models.kernels.few_rows import machine_code
from paretone.models.minis.lm_mini import DRAFT_PROMPT_SECONDS, SPARE, LmMiniSpeech
from paretone.models.minis.natural_decoder import HOP
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import problem
from tests.engine.recorder import Clock, Follower, collected
from tests.engine.small_language import write_model
from tests.engine.speaking import LONG, drafted, load, script_of, setting, spoken, stream, write_all
from tests.workload import workload


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LmMiniSpeech:
    return load(write_all(tmp_path_factory.mktemp("language") / "model"))


def test_pieces_make_the_whole_and_figures_agree(model: LmMiniSpeech) -> None:
    heard, synthesis = collected(stream(model, LONG, voice("", "lm-mini"), setting(speed=0.9)))
    measured, trace = synthesis.measurements, synthesis.trace
    assert len(heard) > 5
    assert np.array_equal(np.concatenate([one.samples for one in heard]), synthesis.samples)
    assert measured.tokens == len(trace.decoding.tokens) == len(trace.decoding.outcomes) > 100
    assert measured.target_passes == measured.evaluations == len(trace.decoding.cycles)
    assert measured.ops_ratio == pytest.approx(1)
    assert measured.largest_gap_seconds > 0
    assert 0 < measured.first_audio_seconds < measured.seconds
    assert set(trace.decoding.outcomes) == {"decoded"}
    assert trace.decoding.token_rate == model.info.token_rate == 40
    assert len(trace.decoding.starts) == len(trace.chunk_texts) == len(trace.chunk_seconds) > 1
    assert trace.decoding.seconds_of[-1] == pytest.approx(measured.audio_seconds, abs=0.05)
    assert trace.mel.shape[0] >= 2 * measured.tokens * HOP // 256


def test_progress_counts_tokens_of_the_whole_text(model: LmMiniSpeech, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paretone.models.families.language.REPORT_SECONDS", 0.0)
    observer = Follower()
    tokens = spoken(model, setting(), LONG, observer).measurements.tokens
    assert list(dict.fromkeys(report.tokens for report in observer.reports)) == list(range(1, tokens + 1))
    done = [report.steps_done for report in observer.reports]
    assert done == sorted(done)
    assert done[-1] == observer.reports[-1].steps_in_all


# Lengths that adapt to the times of this machine would leave open how many cycles there are.
@pytest.mark.parametrize("chosen", [setting(), setting(drafted(adaptive=False))], ids=["plain", "speculative"])
def test_cancelled_before_the_next_token(model: LmMiniSpeech, chosen: Setting) -> None:
    observer = Follower(cancel_at=40)
    with pytest.raises(Cancelled):
        spoken(model, chosen, LONG, observer)
    assert observer.checks == 40


def test_speech_that_does_not_end_is_kept_and_said(model: LmMiniSpeech, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = LmMiniSpeech.request
    monkeypatch.setattr(LmMiniSpeech, "request", lambda *given: replace(ask(*given), length=None))
    synthesis = spoken(model, setting(seed=3))
    assert synthesis.trace.decoding.run_away == (True,)
    assert "did not end by itself" in synthesis.notes[-1]
    assert synthesis.measurements.tokens > SPARE
    assert len(synthesis.samples) == 2 * synthesis.measurements.tokens * HOP


def test_speech_that_repeats_itself_is_stopped(model: LmMiniSpeech, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paretone.sampling.autoregressive.REPEATED_SECONDS", 0.4)
    monkeypatch.setattr("paretone.sampling.autoregressive.LONGEST_PERIOD_SECONDS", 0.3)
    # Nothing but the likeliest token soon goes in a circle.
    synthesis = spoken(model, setting(temperature=0.0, speed=0.7), LONG)
    assert any("repeated itself" in note for note in synthesis.notes)
    assert len(synthesis.samples)


def test_a_model_that_ends_at_once_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paretone.models.minis.lm_mini.SHORTEST", 0.0)
    silent = load(write_model(tmp_path / "silent", end_score=100.0))
    with pytest.raises(PlainError, match="stopped immediately and said nothing"):
        spoken(silent, setting())


def test_a_passage_that_ends_at_once_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = load(write_model(tmp_path / "silent", end_score=100.0))
    ask = LmMiniSpeech.request

    def last_at_once(self: LmMiniSpeech, network: object, passage: object, *more: object) -> object:
        request = ask(self, network, passage, *more)
        return replace(request, minimum=0) if "thrown" in passage.text else request

    monkeypatch.setattr(LmMiniSpeech, "request", last_at_once)
    synthesis = spoken(silent, setting(speed=0.9), LONG)
    assert any("stopped immediately" in note and "thrown" in note for note in synthesis.notes)
    assert synthesis.measurements.audio_seconds > 0.5
    assert synthesis.trace.decoding.run_away == (False,) * len(synthesis.trace.chunk_texts)


def test_short_memory_is_a_sentence(model: LmMiniSpeech, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = LmMiniSpeech.request
    monkeypatch.setattr(LmMiniSpeech, "request", lambda *given: replace(ask(*given), maximum=10**14))
    with pytest.raises(DeviceError, match="ran out of memory at a passage of about"):
        spoken(model, setting(drafted()))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_minutes_of_text_are_spoken_whole(tmp_path: Path) -> None:
    # Fast, and it ends at the half of what is expected, as soon as it may: there is less to decode.
    brief = load(write_model(tmp_path / "brief", end_score=100.0))
    times = workload(30, 3)
    text = " ".join([LONG] * times)
    _, passages = brief.prepare(text, voice("", "lm-mini"), setting(speed=1.0).options, lambda: None)
    assert sum(one.expected for one in passages.passages) / brief.info.token_rate > 6 * times
    pieces, said = collected(stream(brief, text, voice("", "lm-mini"), setting(speed=2.0)))
    assert len(pieces) > times and np.array_equal(np.concatenate([one.samples for one in pieces]), said.samples)
    assert " ".join(said.trace.chunk_texts).count("box was thrown") == times
    _, passages = brief.prepare(text, voice("", "lm-mini"), setting(speed=2.0).options, lambda: None, 0)
    assert said.measurements.tokens == sum(round(0.5 * one.expected) for one in passages.passages)
    assert not any(said.trace.decoding.run_away) and all("At speed" in one for one in said.notes)


def test_what_only_flow_models_have_is_refused(model: LmMiniSpeech) -> None:
    with pytest.raises(SettingError, match="Calibrating is for models that go from noise to speech"):
        flow_model(model, "Calibrating")
    assert "is not for models like" in problem(model.info, setting(UsedTechnique("ditreducio")))


def test_a_draft_hears_the_end_of_the_recording(model: LmMiniSpeech) -> None:
    script = script_of(model, setting(drafted()))
    works = model.internals(script)
    own, shorter = works.request, works.draft_request
    heard = round(DRAFT_PROMPT_SECONDS * model.info.token_rate)
    assert shorter.embedded.shape[1] == 2 * heard + script.passages[0].expected + 2
    assert own.embedded.shape[1] == 2 * len(script.prompt.codes) + script.passages[0].expected + 2
    # The same text, and the same speech up to where the new begins.
    assert torch.equal(shorter.embedded[:, -heard:], own.embedded[:, -heard:])
    text = slice(heard, heard + script.passages[0].expected)
    before = len(script.prompt.codes) - heard
    assert torch.equal(shorter.embedded[:, text], own.embedded[:, text.start + before : text.stop + before])
    assert shorter.first_position == own.first_position - before
    # Side by side with its phone stands every token still.
    assert shorter.positions[text.start] == shorter.first_position - 1
    assert model.internals(script_of(model, setting())).draft_request is None


def test_a_draft_computes_as_its_target_does(model: LmMiniSpeech) -> None:
    """Weights that are float16 numbers are read as such: otherwise drafting would cost more than it must."""
    script = script_of(model, setting(drafted()))
    networks = script.network.target, script.network.draft
    assert {one.tokens.head_weight_bytes for one in networks} == {2 if machine_code() else 4}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pace(clock: Clock) -> Pace:
    return Pace(0.0, clock)


def test_times_to_the_first_piece_and_between_pieces(clock: Clock, pace: Pace) -> None:
    for clock.now, seconds in ((0.3, 1.0), (0.8, 1.0), (2.0, 0.5)):
        pace.delivered(seconds)
    assert pace.first_audio_seconds == pytest.approx(0.3)
    assert pace.largest_gap == pytest.approx(1.2)
    assert pace.pause == 0
    assert pace.remarks == ()


def test_playback_that_would_have_waited_is_told(clock: Clock, pace: Pace) -> None:
    # Half a second late, and once more after that was made up for.
    for clock.now, seconds in ((0.0, 1.0), (1.5, 1.0), (3.0, 1.0)):
        pace.delivered(seconds)
    assert pace.pause == pytest.approx(1.0)
    assert "would have paused for 1.0 s" in pace.remarks[0]


def test_a_wait_that_is_not_over_counts_so_far(clock: Clock, pace: Pace) -> None:
    clock.now = 5.0
    assert pace.pause_so_far == 0
    pace.delivered(1.0)
    clock.now = 6.5
    assert pace.pause_so_far == pytest.approx(0.5)
    assert pace.pause == 0
    pace.delivered(1.0)
    assert pace.pause_so_far == pace.pause == pytest.approx(0.5)


def test_as_many_steps_as_fit_before_what_was_heard_runs_out(clock: Clock, pace: Pace) -> None:
    assert pace.affordable(16, 100, 20) == 16
    clock.now = 1.0
    pace.delivered(2.0)
    assert pace.affordable(16, 100, 20) == 16
    pace.stepped(100, 0.1)
    pace.decoded(20, 0.1)
    # 0.8 of the 2 s that are left, without 0.1 s for decoding, at 0.1 s a step.
    assert pace.affordable(16, 100, 20) == 15
    assert pace.affordable(10, 100, 20) == 10
    # Longer canvases take longer, and so does decoding more.
    assert pace.affordable(16, 150, 20) == 10
    assert pace.affordable(16, 100, 40) == 14
    clock.now = 2.9
    assert pace.affordable(16, 100, 20) == FEWEST_STEPS


def test_a_running_block_may_use_more_of_the_time_and_is_cut_when_that_is_gone(clock: Clock, pace: Pace) -> None:
    pace.delivered(2.0)
    for _ in range(4):
        pace.stepped(100, 0.1)
    # 0.9 of 2 s.
    assert pace.still(1, 30, 100, 20) == 18
    assert pace.still(1, 10, 100, 20) == 10
    # The last two steps say that it has become twice as slow.
    pace.stepped(100, 0.2)
    pace.stepped(100, 0.2)
    assert pace.still(3, 30, 100, 20) == 9
    clock.now = 2.0
    assert pace.still(1, 10, 100, 20) == FEWEST_STEPS - 1
    assert pace.still(6, 10, 100, 20) == 1


def test_an_assumed_pace_is_moved_by_its_own_steps_only() -> None:
    pace = AssumedPace(0.05)
    for _ in range(4):
        pace.stepped(100, 3.0)
    pace.delivered(1.0)
    pace.decoded(20, 3.0)
    # 0.8 of 1 s at 0.05 s a step, whatever it was and over how many rows.
    assert pace.affordable(30, 7, 20) == pace.affordable(30, 700, 20) == 16
    assert pace.still(2, 14, 700, 20) == 14
    for _ in range(16):
        pace.stepped(100, 0.0)
    pace.delivered(1.5)
    # 0.2 s were left of the first.
    assert pace.affordable(30, 100, 20) == 27
