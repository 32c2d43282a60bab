from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.models.minis.omni_mini.codec import ResidualCodec, ResidualCodecConfig
from engine.models.networks.quantised_mel import read_quantised_mel
from engine.training.recipes.codec_mini import CodecMiniOptions, CodecMiniRecipe
from engine.training.recipes.moving_codebooks import CodebookOptions
from tests.engine.training.learning import learning
from tests.engine.training.resuming import same_weights, whole_and_resumed
from tests.engine.training.toy_corpus import toy_corpus

CPU = torch.device("cpu")
SMALL = ResidualCodecConfig(
    codebooks=3,
    codes=12,
    numbers=6,
    width=32,
    inner_width=48,
    encoder_frame_layers=1,
    encoder_token_layers=1,
    decoder_token_layers=1,
    decoder_frame_layers=1,
)
QUICK = CodecMiniOptions(frames=32, batch=8, warm_up=5, average_decay=0.9)


def recipe(options: CodecMiniOptions = QUICK) -> CodecMiniRecipe:
    return CodecMiniRecipe(toy_corpus(), CPU, options, SMALL)


@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
def test_copies_get_better_and_codes_tell_phones_apart(half: bool):
    learnt = learning(recipe, replace(QUICK, half_precision=half), 40, lambda number: 0.1)
    learnt.assert_validation_falls("mel")
    learnt.assert_losses_fall("mel", "phone")
    run = learnt.taught
    assert run.after["phones"] > max(run.before["phones"], learnt.control.after["phones"])
    assert run.after["codes"] > run.before["codes"]
    assert all(value.dtype == torch.float32 for value in run.recipe.model.parameters())


def test_what_rounding_leaves_over_passes_the_gradient_and_is_what_the_codes_say():
    run = recipe(replace(QUICK, codebooks=CodebookOptions(shortened_share=0.0)))
    latents = torch.randn(2, 5, SMALL.numbers, requires_grad=True)
    before = run.model.quantiser.codebooks.clone()
    numbers, further = run.rounded(latents)
    run.model.quantiser.codebooks.copy_(before)
    said = run.model.quantiser.numbers(run.model.quantiser.codes(latents.detach()))
    torch.testing.assert_close(numbers.detach(), said)
    assert further["commitment"] > 0
    (gradient,) = torch.autograd.grad(numbers.sum(), latents)
    assert torch.equal(gradient, torch.ones_like(latents))


def test_each_further_codebook_brings_the_copy_closer():
    run = recipe()
    for number in range(1, 41):
        run.step(number, 0.1)
    quantiser = run.average.module.quantiser
    latents = run.average.module.latents(run._excerpt().mel[None])
    codes = quantiser.codes(latents)
    distances = []
    for count in range(SMALL.codebooks + 1):
        known = codes.clone()
        known[..., count:] = SMALL.absent
        distances.append(float((quantiser.numbers(known) - latents).square().mean()))
    assert distances == sorted(distances, reverse=True)
    assert distances[0] == pytest.approx(float(latents.square().mean()))


def test_a_resumed_run_ends_with_the_same_bits(tmp_path: Path):
    whole, resumed = whole_and_resumed(recipe, tmp_path)
    assert same_weights(resumed.average.module, whole.average.module)
    assert torch.equal(resumed._codebooks.uses, whole._codebooks.uses)


def test_the_export_is_a_codec_that_the_model_loads(tmp_path: Path):
    run = recipe()
    for number in range(1, 4):
        run.step(number, 0.1)
    run.export(tmp_path)
    loaded, voices = read_quantised_mel(tmp_path, ResidualCodec)
    assert loaded.config == SMALL
    assert set(voices) == {"slt", "rms"}
    ours = run.average.module.state_dict()
    for name, value in loaded.state_dict().items():
        torch.testing.assert_close(value, ours[name], atol=1e-2, rtol=1e-3)
