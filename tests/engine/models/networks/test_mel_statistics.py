from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from paretone.models.minis.natural.mel_reader import MelReader, MelReaderConfig
from paretone.models.networks.mel_statistics import MelStatistics
from paretone.training.recipes.bundled_recipe import begin_over_mels


@dataclass(frozen=True)
class _Clip:
    mel: np.ndarray


def clips() -> list[_Clip]:
    """Seven clips, of which the first counts: bands of different level and spread."""
    draw = np.random.default_rng(4)
    mel = np.array([-3.0, 0.0, 2.0]) + np.array([2.0, 0.5, 1.0]) * draw.standard_normal((400, 3))
    return [_Clip(mel), *(_Clip(mel + 9) for _ in range(6))]


def test_normalised_mels_have_mean_zero_and_variance_one_and_come_back():
    statistics = MelStatistics(3)
    begin_over_mels(statistics, clips())
    mel = torch.from_numpy(clips()[0].mel).float()
    normal = statistics.normalised(mel)
    torch.testing.assert_close(normal.mean(0), torch.zeros(3), atol=1e-4, rtol=0)
    torch.testing.assert_close(normal.std(0), torch.ones(3))
    torch.testing.assert_close(statistics.log_mel(normal), mel)


def test_convnext_blocks_begin_close_to_passing_their_input_on():
    reader = MelReader(MelReaderConfig(bands=3, width=8, inner_width=8, layers=1))
    begin_over_mels(reader, clips())
    gammas = [value for name, value in reader.named_parameters() if name.endswith("gamma")]
    assert gammas
    assert all(torch.equal(one, torch.full_like(one, 0.2)) for one in gammas)
