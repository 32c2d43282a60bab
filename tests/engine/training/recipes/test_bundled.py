"""Bundled models are those of their recipes and logs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from paretone.models.f5.checkpoint import read_f5_checkpoint
from paretone.models.minis.lm_mini import LmMiniFolder
from paretone.models.minis.megatts3_mini import MegaMiniFolder
from paretone.models.minis.omni_mini import OmniMiniFolder
from paretone.paths import resource
from paretone.training.recipes.bundled_training import RECIPES
from paretone.training.recipes.natural_codecs import CODEC, TOKENIZER
from paretone.training.recipes.natural_f5 import ARCHITECTURE
from paretone.training.recipes.natural_language import LAYOUT, SMALL_LM, SMALL_OMNI, layout_of
from paretone.training.recipes.natural_megatts3 import ARCHITECTURE as MEGA_ARCHITECTURE
from paretone.training.spoken_tokens import VOCABULARY


@pytest.mark.parametrize(
    ("log", "recipe", "found", "expected"),
    [
        ("f5-mini/training-2.jsonl", "voice-f5", lambda at: read_f5_checkpoint(at).config, ARCHITECTURE),
        (
            "megatts3-mini/training.jsonl",
            "voice-megatts3",
            lambda at: MegaMiniFolder(at).backbone().config,
            MEGA_ARCHITECTURE,
        ),
        (
            "lm-mini/training.jsonl",
            "voice-lm",
            lambda at: (LmMiniFolder(at).config(), LmMiniFolder(at).layout()),
            (SMALL_LM, layout_of(VOCABULARY, TOKENIZER.codes)),
        ),
        (
            "omni-mini/training.jsonl",
            "voice-omni",
            lambda at: (OmniMiniFolder(at).config().transformer, OmniMiniFolder(at).layout()),
            (SMALL_OMNI, LAYOUT),
        ),
        ("omni-mini/codec/training.jsonl", "voice-codec", lambda at: OmniMiniFolder(at.parent).codec().config, CODEC),
    ],
)
def test_a_bundled_model_is_that_of_its_recipe(
    log: str, recipe: str, found: Callable[[Path], object], expected: object
) -> None:
    path = resource("models", log)
    assert json.loads(path.read_text(encoding="utf-8").splitlines()[0])["recipe"] == recipe and recipe in RECIPES
    assert found(path.parent) == expected
