from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.errors import Cancelled, TrainingError
from engine.models.files.checkpoints import metadata_of, read_float_weights
from engine.models.files.interval_weights import described, plain_names
from engine.setting.knobs import Values
from engine.techniques.average_velocity.fine_tuning import fine_tune
from engine.techniques.average_velocity.requests import METHODS, AverageVelocityRequest
from engine.training.session import Intervals
from tests.engine.training.toy_model import toy_manifest, toy_model
from tests.packages import needs

pytestmark = needs("accelerate")


class Quiet:
    def check(self) -> None: ...
    def status(self, text: str) -> None: ...
    def progress(self, done: int, total: int) -> None: ...
    def milestone(self, milestone: object) -> None: ...


def _request(folder: Path, **changes: object) -> AverageVelocityRequest:
    given = {
        "model": "f5-mini",
        "folder": str(folder / "model"),
        "manifest": str(folder / "speech" / "manifest.csv"),
        "work": str(folder / "work"),
        "export": str(folder / "result"),
        "steps": 4,
        "frames": 300,
        "teacher_steps": 4,
        "device": "cpu",
    }
    return AverageVelocityRequest(**given | changes)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    toy_model(tmp_path / "model")
    toy_manifest(tmp_path, clips=8)
    return tmp_path


def test_a_training_writes_weights_with_what_they_are(place: Path) -> None:
    trained = fine_tune(_request(place, guidance=Values(guidance=1.5)), Quiet(), Intervals())
    path = Path(trained.checkpoint)
    assert path == place / "result" / "guidance-1.5.safetensors"
    found = described(metadata_of(path), str(path), "")
    assert found is not None
    assert (found.evaluations, found.sway, dict(found.guidance), found.method) == (
        4,
        -1.0,
        {"guidance": 1.5},
        METHODS[0],
    )
    weights = plain_names(read_float_weights(path))
    start = plain_names(read_float_weights(place / "model" / "model.safetensors"))
    extra = {f"time_embed.interval_mlp.{layer}.{kind}" for layer in (0, 2) for kind in ("weight", "bias")}
    assert set(weights) == set(start) | extra
    assert any(not torch.equal(weights[name], start[name]) for name in start)
    assert trained.validation["left"] > 0


def test_cancelled_it_leaves_a_checkpoint(place: Path) -> None:
    class Cancelling(Quiet):
        def milestone(self, milestone: object) -> None:
            raise Cancelled

    with pytest.raises(Cancelled, match=r"step 1; the work folder holds a checkpoint to resume from"):
        fine_tune(_request(place), Cancelling(), Intervals())
    assert fine_tune(_request(place, resume=True, steps=2), Quiet(), Intervals()).steps == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "CosyVoice2-0.5B"}, "cannot be trained here, only F5-TTS and the bundled MegaTTS 3"),
        ({"model": "MegaTTS3"}, "cannot be trained here, only F5-TTS and the bundled MegaTTS 3"),
        ({"guidance": Values(similarity=2.0)}, "not guided by similarity; its guidance is guidance"),
        ({"model": "F5TTS_v1_Base", "manifest": ""}, "needs a manifest of recordings"),
    ],
)
def test_what_cannot_be_trained_is_said(place: Path, changes: dict, words: str) -> None:
    with pytest.raises(TrainingError, match=words):
        fine_tune(_request(place, **changes), Quiet(), Intervals())
