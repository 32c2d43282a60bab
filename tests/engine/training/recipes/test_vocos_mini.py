from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from engine.audio.mel import MelFrontEnd
from engine.models.files.checkpoints import read_weights
from engine.models.networks.vocos import Vocos, VocosConfig
from engine.paths import resource
from engine.training.recipes.discriminators import (
    PERIODS,
    RESOLUTIONS,
    Discriminators,
    discriminator_loss,
    feature_matching_loss,
    generator_loss,
)
from engine.training.recipes.vocos_mini import (
    VocosMini,
    VocosOptions,
    buzz,
    copy_synthesis_distances,
    mel_distance,
    spectral_loss,
)
from tests.engine.training.learning import SHARE, learning
from tests.engine.training.toy_corpus import toy_corpus
from tests.workload import workload

CPU = torch.device("cpu")
SMALL = VocosConfig(width=48, inner_width=96, layers=2)


def test_the_held_out_distances_fall():
    def make(options: VocosOptions) -> VocosMini:
        return VocosMini(toy_corpus(), CPU, options, architecture=SMALL)

    options = VocosOptions(frames=24, batch=4, learning_rate=3e-3, average_decay=0.9)
    learnt = learning(make, options, workload(60, 40), lambda number: 0.1 + 0.001 * number)
    learnt.assert_validation_falls("mel", "spectrum")


def test_the_adversarial_phase_begins_with_its_share_of_the_budget():
    recipe = VocosMini(toy_corpus(), CPU, VocosOptions(frames=16, batch=2, adversarial_from=0.4), architecture=SMALL)
    judges = [value.clone() for value in recipe.judges.parameters()]
    assert set(recipe.step(1, 0.39)) == {"mel", "spectrum"}
    assert all(map(torch.equal, judges, recipe.judges.parameters()))
    losses = recipe.step(2, 0.4)
    assert set(losses) == {"mel", "spectrum", "judges", "fooling", "matching"}
    # At first, real and made pull a score's bias apart with equal force; everything else moves.
    assert sum(map(torch.equal, judges, recipe.judges.parameters())) <= len(recipe.judges.judges)
    assert all(value.requires_grad for value in recipe.judges.parameters())


def test_judges_learn_to_tell_a_buzz_from_a_tone():
    torch.manual_seed(0)
    time = torch.arange(16 * 256) / 24_000
    judges = Discriminators()
    optimiser = torch.optim.AdamW(judges.parameters(), lr=1e-3)

    def examples() -> tuple[torch.Tensor, torch.Tensor]:
        pitch = torch.empty(4, 1).uniform_(100, 200)
        tone = 0.1 * torch.sin(2 * torch.pi * pitch * time)
        return tone, tone + 0.05 * torch.sin(2 * torch.pi * 31 * pitch * time)

    def judged() -> tuple[float, float]:
        with torch.no_grad():
            real, made = judges(tone), judges(buzz)
            return float(discriminator_loss(real, made)), float(generator_loss(made) - generator_loss(real))

    tone, buzz = examples()
    untaught, _ = judged()
    for _ in range(workload(20, 12)):
        tone, buzz = examples()
        loss = discriminator_loss(judges(tone), judges(buzz))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    tone, buzz = examples()
    loss, lead = judged()
    assert loss < (1 - SHARE) * untaught
    assert lead > SHARE * untaught


def test_every_judge_gives_scores_and_features_for_any_length():
    judges = Discriminators()
    for samples in (4_096, 5_001):
        judgements = judges(torch.randn(2, samples))
        assert len(judgements) == len(PERIODS) + len(RESOLUTIONS)
        assert all(score.shape[:2] == (2, 1) and len(features) == 4 for score, features in judgements)


def test_feature_matching_is_zero_for_the_real_thing_only():
    judges = Discriminators()
    real = torch.randn(1, 4_096)
    with torch.no_grad():
        assert float(feature_matching_loss(judges(real), judges(real))) == 0
        assert float(feature_matching_loss(judges(real), judges(0.5 * real))) > 0.05


def test_losses_are_zero_for_equal_audio_and_blind_below_what_can_be_heard():
    audio = 0.1 * torch.randn(1, 8_192, generator=torch.Generator().manual_seed(0))
    front_end = MelFrontEnd()
    assert float(spectral_loss(audio, audio)) == 0
    assert float(spectral_loss(0.5 * audio, audio)) > 0.5
    assert float(mel_distance(front_end(0.5 * audio), front_end(audio))) == pytest.approx(np.log(2), rel=0.05)
    faint = 1e-7 * torch.randn(1, 8_192, generator=torch.Generator().manual_seed(1))
    assert float(mel_distance(front_end(faint), front_end(torch.zeros_like(faint)))) == 0


def test_a_pulse_a_frame_is_a_buzz_and_noise_is_none():
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(1, 24_000, generator=generator)
    pulses = torch.zeros(1, 24_000)
    pulses[:, ::256] = 1
    voice = torch.zeros(1, 24_000)
    voice[:, ::190] = 1
    assert abs(buzz(noise)) < 0.05
    assert buzz(pulses) > 0.8
    assert abs(buzz(voice)) < 0.1
    assert 0.3 < buzz(pulses + 0.05 * noise) < 0.8


def test_silence_has_finite_gradients():
    silence = torch.zeros(1, 4_096, requires_grad=True)
    spectral_loss(silence, torch.zeros(1, 4_096)).backward()
    assert torch.isfinite(silence.grad).all()
    loud = torch.zeros(1, 4_096, requires_grad=True)
    generator_loss(Discriminators()(loud)).backward()
    assert torch.isfinite(loud.grad).all()


def test_the_export_is_an_official_folder_with_the_averaged_weights(tmp_path: Path):
    recipe = VocosMini(toy_corpus(), CPU, VocosOptions(frames=16, batch=2), architecture=SMALL)
    recipe.step(1, 0.1)
    recipe.export(tmp_path)
    loaded = Vocos.load(tmp_path)
    mel = torch.randn(1, 100, 12)
    torch.testing.assert_close(loaded.decode(mel), recipe.average.module.decode(mel), atol=0, rtol=0)
    bundled = read_weights(resource("models", "vocos-mini", "pytorch_model.bin"))
    ours = read_weights(tmp_path / "pytorch_model.bin")
    kept = {name for name in bundled if ".convnext." not in name}
    assert {name for name in ours if ".convnext." not in name} == kept
    for name in ("feature_extractor.mel_spec.spectrogram.window", "feature_extractor.mel_spec.mel_scale.fb"):
        torch.testing.assert_close(ours[name], bundled[name], atol=1e-5, rtol=1e-4)
    configuration = yaml.safe_load((tmp_path / "config.yaml").read_text(encoding="utf-8"))
    official = yaml.safe_load(resource("models", "vocos-mini", "config.yaml").read_text(encoding="utf-8"))
    assert {part: entry["class_path"] for part, entry in configuration.items()} == {
        part: entry["class_path"] for part, entry in official.items()
    }
    assert {part: set(entry["init_args"]) for part, entry in configuration.items()} == {
        part: set(entry["init_args"]) for part, entry in official.items()
    }


def test_training_can_start_from_given_weights():
    folder = resource("models", "vocos-mini")
    recipe = VocosMini(toy_corpus(), CPU, VocosOptions(), initial=folder)
    given = Vocos.load(folder)
    assert all(map(torch.equal, recipe.model.state_dict().values(), given.state_dict().values()))
    assert all(value.requires_grad for value in recipe.model.parameters())
    assert recipe.describe()["initial_weights"] == "vocos-mini"
    assert copy_synthesis_distances(given, recipe._held_out, CPU) == recipe.validate()
