"""Sizes read from the shapes of weights."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from paretone.errors import CheckpointError
from paretone.models.megatts3.config import OPTIONS, DiTConfig
from paretone.models.megatts3.dit import MegaDiT
from paretone.setting.knobs import defaults
from tests.engine.models.megatts3.plain_dit import SMALL


def shapes_of(config: DiTConfig) -> dict[str, tuple[int, ...]]:
    with torch.device("meta"):
        model = MegaDiT(config)
    return {name: tuple(value.shape) for name, value in model.state_dict().items()}


@pytest.mark.parametrize("changes", [{}, {"layers": 12, "phone_layers": 1, "phone_window": 2, "phone_kernel": 5}])
def test_shapes_tell_every_size_but_the_heads(changes: dict) -> None:
    config = replace(SMALL, **changes)
    assert DiTConfig.from_shapes(shapes_of(config), "x", heads=config.heads) == config


def test_heads_are_as_wide_as_in_the_release_unless_told() -> None:
    assert DiTConfig.from_shapes(shapes_of(replace(SMALL, dim=128)), "x").heads == 2


@pytest.mark.parametrize("name", ["x_prenet.weight", "ph_encoder.encoder.attn_layers.0.emb_rel_k", "tone_embed.weight"])
def test_a_missing_weight_is_named(name: str) -> None:
    shapes = shapes_of(SMALL)
    del shapes[name]
    with pytest.raises(CheckpointError, match=f"model.ckpt lacks the weight {name}"):
        DiTConfig.from_shapes(shapes, "model.ckpt")


@pytest.mark.parametrize("heads", [3, 7])
def test_heads_must_divide_the_width(heads: int) -> None:
    with pytest.raises(CheckpointError, match=f"64 cannot be split into {heads} heads"):
        DiTConfig.from_shapes(shapes_of(SMALL), "model.ckpt", heads)


def test_options_are_the_official_defaults_and_say_what_shapes_the_trajectory() -> None:
    options = defaults(OPTIONS)
    assert (options["steps"], options["sway"], options["spacing"]) == (32, -1.0, "uniform")
    assert (options["intelligibility"], options["similarity"], options["overshoot"]) == (1.6, 2.5, 3.0)
    shaping = {knob.name for knob in OPTIONS if knob.trajectory}
    assert shaping == {"steps", "spacing", "sway", "intelligibility", "similarity", "overshoot"}
