from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from paretone.errors import AudioError, Cancelled, CheckpointError
from paretone.models.megatts3.aligner import (
    END,
    START,
    Aligner,
    AlignerConfig,
    fitted_durations,
    log_mel,
    read_alignment,
)
from paretone.models.megatts3.passages import Timed
from tests.engine.models.megatts3.small_release import SMALL_ALIGNER, random_weights, shapes_of


@pytest.fixture(scope="module")
def aligner() -> Aligner:
    return Aligner.from_official(random_weights(shapes_of(Aligner(SMALL_ALIGNER))), "small")


def tone(seconds: float) -> torch.Tensor:
    return 0.3 * torch.sin(torch.arange(int(16000 * seconds)) * 2 * math.pi * 440 / 16000)


def test_tokens_become_phones_tones_and_durations() -> None:
    # E0aa until 5, a Chinese phone with its second tone until 9, silence until 16.
    assert read_alignment([101, 805, 208, 809, 145, 816], 16) == Timed((101, 4, 145), (3, 11, 3), (5, 4, 7))


def test_missing_frames_go_to_the_last_phone() -> None:
    assert read_alignment([101, 805, 102, 809], 16).durations == (5, 11)


def test_too_many_frames_are_taken_in_turn_from_the_first_on() -> None:
    assert fitted_durations([5, 4, 7], 11) == [3, 2, 6]


@pytest.mark.parametrize("tokens", [[101, 1750, 102, 1751], [101, 805, 102, 803, 103, 804], [101, 800, 102, 900]])
def test_no_duration_becomes_negative(tokens: list[int]) -> None:
    alignment = read_alignment(tokens, 8)
    assert min(alignment.durations) >= 0
    assert alignment.frames == 8


def test_a_phone_without_a_time_at_the_end_is_left_out() -> None:
    assert read_alignment([101, 808, 102], 8) == Timed((101,), (3,), (8,))


def test_no_phone_at_all_is_the_recordings_fault() -> None:
    with pytest.raises(AudioError, match="No speech was found"):
        read_alignment([], 8)


def test_frames_are_cut_to_a_multiple_of_eight() -> None:
    assert log_mel(tone(1.0)).shape == (1, 80, 96)


def test_the_mel_front_end_has_whispers_range() -> None:
    mel = log_mel(tone(1.0))
    assert mel.max() - mel.min() == pytest.approx(2.0)  # eight decades, divided by four
    # A tone of 440 Hz sounds in the band around it: Slaney's scale is linear there.
    highest = slaney_band(440.0)
    assert abs(int(mel.mean(2).argmax()) - highest) <= 1


def slaney_band(frequency: float) -> int:
    top = 15 + math.log(8000 / 1000) * 27 / math.log(6.4)
    return round(frequency / (200 / 3) / (top / 81) - 1)


def test_a_recording_too_short_or_too_long_is_refused(aligner: Aligner) -> None:
    with pytest.raises(AudioError, match=r"lasts 0\.05 s"):
        log_mel(tone(0.05))
    with pytest.raises(AudioError, match="cut it to 8 s"):
        aligner.tokens(torch.zeros(1, 80, 808))


def test_decoding_stops_at_the_limit_or_at_the_end_token(aligner: Aligner) -> None:
    mel = log_mel(tone(1.0))
    found = aligner.tokens(mel, 10)
    assert found[0] == START
    assert len(found) == 11 or found[-1] == END
    ending = Aligner.from_official(aligner.state_dict(), "small")
    with torch.no_grad():
        ending.decoder.out_proj.bias[END] = 1e4
    assert ending.tokens(mel, 10) == [START, END]


def test_decoding_can_be_cancelled(aligner: Aligner) -> None:
    calls = []

    def check() -> None:
        calls.append(None)
        if len(calls) == 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        aligner.tokens(log_mel(tone(1.0)), 50, check)
    assert len(calls) == 3


def test_sizes_come_from_the_weights_and_foreign_weights_are_named() -> None:
    weights = random_weights(shapes_of(Aligner(SMALL_ALIGNER)))
    assert AlignerConfig.of_weights(weights, "small") == SMALL_ALIGNER
    del weights["decoder.out_proj.bias"]
    with pytest.raises(CheckpointError, match=r"decoder\.out_proj\.bias"):
        Aligner.from_official(weights, "small")


def test_a_vocabulary_without_times_is_refused() -> None:
    small = replace(SMALL_ALIGNER, vocabulary=800)
    with pytest.raises(CheckpointError, match="800 tokens"):
        Aligner.from_official(random_weights(shapes_of(Aligner(small))), "small")
