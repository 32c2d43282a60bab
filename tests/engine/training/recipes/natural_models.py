"""Small models of natural speech with tokens, as their recipes make them from a toy corpus."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from paretone.training.recipes.natural_lm import SMALL_LM, LmOptions, NaturalLm
from paretone.training.recipes.natural_omni import SMALL_OMNI, NaturalOmni, OmniOptions
from paretone.training.recipes.natural_tokens import (
    CODEC,
    TOKENIZER,
    NaturalCodec,
    NaturalTokenizer,
    NaturalTokenOptions,
)
from tests.engine.training.toy_natural import toy_natural_corpus

CPU = torch.device("cpu")
TOKENS = NaturalTokenOptions(frames=40, batch=4, warm_up=5)
QUICK_LM = LmOptions(positions=500, other_rate=5e-3, warm_up=5, average_decay=0.9, validation_items=4)
QUICK_OMNI = OmniOptions(frames=120, other_rate=5e-3, warm_up=5, average_decay=0.9, validation_items=4)
LM = replace(SMALL_LM, hidden=64, layers=2, heads=2, key_value_heads=2, head_width=32, feed_forward=96)
OMNI = replace(SMALL_OMNI, hidden=64, layers=2, heads=2, key_value_heads=1, head_width=32, feed_forward=96)
LM_TOKENIZER = replace(TOKENIZER, width=32, inner_width=48, levels=(4, 4, 3))
OMNI_CODEC = replace(CODEC, width=32, inner_width=48, codes=16)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a speech tokenizer."""
    folder = tmp_path_factory.mktemp("tokenizer")
    NaturalTokenizer(toy_natural_corpus(), CPU, TOKENS, LM_TOKENIZER).export(folder)
    return folder


@pytest.fixture(scope="module")
def codec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a codec after some steps: codebooks begin empty."""
    folder = tmp_path_factory.mktemp("codec")
    run = NaturalCodec(toy_natural_corpus(), CPU, TOKENS, OMNI_CODEC)
    for number in range(1, 6):
        run.step(number, 0.1)
    run.export(folder)
    return folder


def lm(tokenizer: Path, work: Path, options: LmOptions = QUICK_LM) -> NaturalLm:
    return NaturalLm(toy_natural_corpus(), tokenizer, work, CPU, options, LM)


def omni(codec: Path, work: Path, options: OmniOptions = QUICK_OMNI) -> NaturalOmni:
    return NaturalOmni(toy_natural_corpus(), codec, work, CPU, options, OMNI)
