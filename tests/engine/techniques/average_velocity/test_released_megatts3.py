"""A small release of MegaTTS 3 in the official layout is trained for few evaluations, and speaks in them."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.errors import CheckpointError
from paretone.files import wav
from paretone.models import load_model
from paretone.models.base import Voice
from paretone.models.catalogue import VOICES, entry, voices
from paretone.models.files.checkpoints import fingerprint, read_float_weights
from paretone.models.files.trained_weights import described_interval, interval_metadata, save_in_half
from paretone.models.megatts3 import graphemes
from paretone.models.megatts3.checkpoint import OfficialFolder
from paretone.models.megatts3.dit import MegaDiT
from paretone.models.networks.diffusion import add_interval
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import synthesise
from paretone.techniques import average_velocity
from paretone.techniques.average_velocity import AverageVelocityRequest
from paretone.techniques.average_velocity.recipe import fine_tune
from paretone.training import fine_tuning
from paretone.training.requests import Follower
from paretone.training.session import Intervals
from tests.engine.models.megatts3.small_release import SMALL_DIT, write_release
from tests.engine.techniques.average_velocity.test_recipe import request
from tests.packages import needs
from tests.workload import only_in_full

MODEL = "MegaTTS3"
GUIDANCE = Values(intelligibility=1.6, similarity=2.5)


def test_untrained_it_is_the_official_velocity_to_the_bit() -> None:
    torch.manual_seed(4)
    official = MegaDiT(SMALL_DIT).eval()
    student = MegaDiT(SMALL_DIT).eval()
    student.load_state_dict(official.state_dict())
    add_interval(student)
    state, context = torch.randn(2, 6, 32), torch.randn(2, 6, 32)
    prompt = torch.arange(6)[None].expand(2, 6) < 3
    phones, tones = torch.randint(1, 90, (2, 5)), torch.full((2, 5), 3)
    places = torch.arange(24).div(6, rounding_mode="floor")[None].expand(2, 24) + 1
    known = official.conditions(context, prompt, phones, tones, places, None)
    times = torch.tensor([0.2, 0.7])
    with torch.no_grad():
        velocity = official.follow(state, prompt, known, times, None)
        assert velocity.abs().max() > 0.01
        assert student.follow(state, prompt, known, torch.stack([times, times], dim=-1), None).equal(velocity)
        further = torch.stack([times, torch.ones(2)], dim=-1)
        assert student.follow(state, prompt, known, further, None).equal(velocity), "nothing is learnt yet"


# --- From release to speech: importing transformers takes seconds -----------------------------------------------------
released = [needs("accelerate"), needs("transformers"), pytest.mark.slow]


def _voice(audio: Path, seed: int) -> Path:
    random = np.random.default_rng(seed)
    audio.parent.mkdir(exist_ok=True)
    audio.write_bytes(wav((random.standard_normal(40_000) * 0.1).astype(np.float32), 24_000))
    np.save(audio.with_suffix(".npy"), random.standard_normal((1, 55, 32)).astype(np.float32))
    return audio


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models") / MODEL
    write_release(root)
    for number, name in enumerate(("ann", "bob")):
        _voice(root / VOICES / f"{name}.wav", number)
    return root


def _request(release: Path, place: Path, **changes: object) -> AverageVelocityRequest:
    return request(MODEL, release, place, frames=500, guidance=GUIDANCE, **changes)


def _speak(release: Path, weights: str, evaluations: int, voice: Voice) -> np.ndarray:
    model = load_model(MODEL, folder=str(release), device="cpu")
    options = entry(MODEL).options_with(steps=4)
    used = UsedTechnique(average_velocity.NAME, Values(evaluations=evaluations), weights)
    take = synthesise(model, "Hello.", voice, Setting(MODEL, options, (used,) if weights else ()))
    assert take.measurements.evaluations == (evaluations if weights else 4)
    return take.samples


class TestReleased:
    pytestmark = released

    @only_in_full("speech")
    def test_it_learns_from_what_it_says_itself_and_speaks_in_few_evaluations(
        self, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(fine_tuning, "STEPS", 2)
        monkeypatch.setattr(graphemes, "LONGEST", 12)  # Random weights find no end.
        texts = ("Rice is good.", "They went home.")
        place = release / "diffusion_transformer" / "intervals"
        asked = _request(release, tmp_path, sentences=2, texts=texts, export=str(place))
        path = Path(fine_tune(asked, Follower(), Intervals()).checkpoint)
        assert path == place / "intelligibility-1.6-similarity-2.5.safetensors"
        weights = read_float_weights(path)
        extra = {f"f5_time_embed.interval_mlp.{layer}.{kind}" for layer in (0, 2) for kind in ("weight", "bias")}
        assert set(weights) == set(OfficialFolder(release).backbone().state_dict()) | extra
        log = (tmp_path / "work" / "training.jsonl").read_text(encoding="utf-8").splitlines()
        assert json.loads(log[0])["initial_weights"] == fingerprint(OfficialFolder(release).backbone_path)
        voice = voices(MODEL, str(release))[0]
        heard = [_speak(release, fingerprint(path), number, voice) for number in (1, 2)]
        assert heard[0].std() > 0 and len(heard[0]) == len(heard[1]) and not np.array_equal(*heard)

    def test_recordings_are_heard_by_its_own_aligner(self, release: Path, tmp_path: Path) -> None:
        lines = ["audio,text,voice"]
        for number in range(4):
            _voice(tmp_path / f"{number}.wav", 10 + number)
            lines.append(f"{number}.wav,Hello.,{'ab'[number % 2]}")
        manifest = tmp_path / "manifest.csv"
        manifest.write_text("\n".join(lines), encoding="utf-8")
        trained = fine_tune(_request(release, tmp_path, manifest=str(manifest)), Follower(), Intervals())
        assert trained.steps == 2 and trained.validation["distance 1"] > 0

    def test_weights_of_another_release_are_not_offered_others_are_refused(self, release: Path, tmp_path: Path) -> None:
        folder = release / "diffusion_transformer" / "intervals"
        folder.mkdir(exist_ok=True)
        small = MegaDiT(SMALL_DIT)
        add_interval(small)
        told = described_interval({"interval": "true", "evaluations": "4", "sway": "-1", "guidance": "{}"}, "", "")
        base = fingerprint(OfficialFolder(release).backbone_path)
        save_in_half(folder / "other.safetensors", small.state_dict(), interval_metadata(told, "f" * 64, 1))
        lacking = {name: value for name, value in small.state_dict().items() if "interval_mlp" not in name}
        save_in_half(folder / "lacking.safetensors", lacking, interval_metadata(told, base, 1))
        model = load_model(MODEL, folder=str(release), device="cpu")
        names = {Path(one.path).stem for one in model.info.interval_weights}
        assert "other" not in names and "lacking" in names
        with pytest.raises(CheckpointError, match="interval_mlp"):
            _speak(release, fingerprint(folder / "lacking.safetensors"), 1, voices(MODEL, str(release))[0])
