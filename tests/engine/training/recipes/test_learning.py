"""Every recipe of the bundled models learns, in both precisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.engine.training.learning import assert_learns
from tests.engine.training.recipes import test_natural_codecs as tokens
from tests.engine.training.recipes import test_natural_flow as flow
from tests.engine.training.recipes import test_natural_language as language
from tests.workload import only_in_full

tokenizer, codec = language.tokenizer, language.codec


@only_in_full("recipes")
@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("make", "options", "steps", "names"),
    [
        (flow.recipe, flow.QUICK, 50, ("t=0.05", "t=0.40", "t=0.05, by word", "t=0.40, by word")),
        (flow.mega, flow.MEGA_QUICK, 50, ("t=0.05", "t=0.40")),
        (tokens.tokenizer, tokens.QUICK, 60, ("components",)),
        (tokens.codec, tokens.QUICK, 60, ("components",)),
        (tokens.recipe, tokens.QUICK_READER, 40, ("components", "components_noised", "cents")),
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
