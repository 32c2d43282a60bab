from __future__ import annotations

import pytest
import torch

from paretone.errors import AudioError, SettingError
from paretone.models.f5.front_end import PromptLevel, prompt_frames, sampled_frames, total_frames


def test_duration_follows_bytes_and_speed() -> None:
    assert prompt_frames(24000) == 93
    assert total_frames(93, "x" * 20, "y" * 40) == 93 + 186
    assert total_frames(93, "x" * 20, "y" * 40, speed=2.0) == 93 + 93
    assert total_frames(90, "对" * 3, "y" * 18) == 90 + 180


def test_short_text_is_spoken_slowly_whatever_the_speed() -> None:
    assert total_frames(60, "x" * 20, "y" * 9, speed=2.0) == 60 + int(60 / 20 * 9 / 0.3)
    assert total_frames(60, "x" * 20, "y" * 10, speed=2.0) == 60 + 15


def test_a_fixed_duration_counts_the_prompt() -> None:
    assert total_frames(90, "x", "y", fixed_seconds=1.3) == 121


def test_impossible_speeds_and_lengths_are_refused() -> None:
    with pytest.raises(SettingError, match="speed must be positive, not 0"):
        total_frames(90, "x", "y" * 20, speed=0)
    with pytest.raises(SettingError, match="fixed duration must be positive, not -1"):
        total_frames(90, "x", "y", fixed_seconds=-1)


def test_sampled_frames_leave_room_and_have_a_limit() -> None:
    assert sampled_frames(50, 21, 19) == 50
    assert sampled_frames(10, 21, 19) == 22
    assert sampled_frames(10, 21, 40) == 41
    assert sampled_frames(100_000, 21, 40) == 65536


def test_a_quiet_prompt_is_raised_and_the_speech_lowered_again() -> None:
    samples = torch.tensor([0.02, -0.02, 0.02, -0.02])
    level = PromptLevel.measure(samples)
    assert level.raised
    torch.testing.assert_close(level.normalised(samples).abs(), torch.full((4,), 0.1))
    torch.testing.assert_close(level.restored(level.normalised(samples)), samples)


def test_a_loud_prompt_is_left_alone() -> None:
    samples = torch.tensor([0.2, -0.2])
    level = PromptLevel.measure(samples)
    assert level.normalised(samples) is samples
    assert level.restored(samples) is samples


@pytest.mark.parametrize("value", [0.0, float("nan"), float("inf")])
def test_a_level_that_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(AudioError, match="silent or damaged"):
        PromptLevel.measure(torch.full((10,), value))
