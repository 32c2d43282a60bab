"""What another number of threads changes: the page of measurements says so."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from paretone.models import load_model
from paretone.models.base import Synthesis
from paretone.models.catalogue import entry, voice
from paretone.setting.setting import Setting
from paretone.setting.take import DecodingCycle
from paretone.speaking import synthesise

FARTHEST = 2e-3
"""Of full scale; the largest difference measured is 5e-4."""


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def spoken(model: str, threads: int) -> Synthesis:
    speech = load_model(model, device="cpu")
    torch.set_num_threads(threads)
    setting = Setting(model, entry(model).options_with(), seed=3)
    text = "Rice is often served in round bowls."
    return synthesise(speech, text, voice("", model), setting)


def cycles(made: Synthesis) -> list[DecodingCycle]:
    decoding = made.trace.decoding
    return [] if decoding is None else [cycle for passage in decoding.passages for cycle in passage]


@pytest.mark.parametrize("model", ["f5-mini", "megatts3-mini", "lm-mini", "omni-mini"])
def test_threads_change_the_last_digits_only_and_the_same_number_nothing(model: str) -> None:
    one, again, three = spoken(model, 1), spoken(model, 1), spoken(model, 3)
    assert np.array_equal(one.samples, again.samples)
    assert one.samples.shape == three.samples.shape
    assert np.abs(one.samples - three.samples).max() < FARTHEST
    tokens, others = ([one.tokens for one in cycles(made)] for made in (one, three))
    assert tokens == others
