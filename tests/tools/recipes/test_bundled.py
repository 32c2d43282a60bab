"""Bundled models are those of their recipes and logs; every recipe learns, in both precisions."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from paretone.models.f5.checkpoint import read_f5_checkpoint
from paretone.models.minis.lm_mini import LmMiniFolder
from paretone.models.minis.megatts3_mini import MegaMiniFolder
from paretone.models.minis.omni_mini import OmniMiniFolder
from paretone.paths import resource
from paretone.training.spoken_tokens import VOCABULARY
from tests.engine.training.learning import assert_learns
from tests.tools.recipes import test_natural_flow as flow
from tests.tools.recipes import test_natural_language as language
from tests.tools.recipes.bundled_training import RECIPES
from tests.tools.recipes.natural_codecs import CODEC, TOKENIZER
from tests.tools.recipes.natural_f5 import ARCHITECTURE
from tests.tools.recipes.natural_language import LAYOUT, SMALL_LM, SMALL_OMNI, layout_of
from tests.tools.recipes.natural_megatts3 import ARCHITECTURE as MEGA_ARCHITECTURE
from tests.workload import only_in_full


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


# --- Learning ---------------------------------------------------------------------------------------------------------
tokenizer, codec = language.tokenizer, language.codec


@only_in_full("recipes")
@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("make", "options", "steps", "names"),
    [
        (flow.recipe, flow.QUICK, 50, ("t=0.05", "t=0.40", "t=0.05, by word", "t=0.40, by word")),
        (flow.mega, flow.MEGA_QUICK, 50, ("t=0.05", "t=0.40")),
        (flow.tokenizer, flow.QUICK_CODEC, 60, ("components",)),
        (flow.codec, flow.QUICK_CODEC, 60, ("components",)),
        (flow.vocoder, flow.QUICK_READER, 40, ("components", "components_noised", "cents")),
    ],
)
def test_it_learns(make: Callable, options: object, steps: int, names: tuple[str, ...], half: bool) -> None:
    assert_learns(make(replace(options, half_precision=half)), steps, *names)


@only_in_full("recipes")
@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
def test_models_of_tokens_learn(tokenizer: Path, codec: Path, tmp_path: Path, half: bool) -> None:
    for make, part, options in (
        (language.lm, tokenizer, language.QUICK_LM),
        (language.omni, codec, language.QUICK_OMNI),
    ):
        recipe = make(part, tmp_path / make.__name__, replace(options, half_precision=half))
        assert_learns(recipe, 30, "cross_entropy")
