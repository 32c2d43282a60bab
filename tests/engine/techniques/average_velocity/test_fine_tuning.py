from __future__ import annotations

from pathlib import Path

import pytest
import torch

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


@pytest.mark.parametrize("method", METHODS)
def test_a_training_writes_weights_with_what_they_are(place: Path, method: str) -> None:
    trained = fine_tune(_request(place, method=method, guidance=Values(guidance=1.5)), Quiet(), Intervals())
    path = Path(trained.checkpoint)
    assert path == place / "result" / "guidance-1.5.safetensors"
    found = described(metadata_of(path), str(path), "")
    assert found is not None
    assert (found.evaluations, found.sway, dict(found.guidance), found.method) == (4, -1.0, {"guidance": 1.5}, method)
    weights = plain_names(read_float_weights(path))
    start = plain_names(read_float_weights(place / "model" / "model.safetensors"))
    extra = {f"time_embed.interval_mlp.{layer}.{kind}" for layer in (0, 2) for kind in ("weight", "bias")}
    assert set(weights) == set(start) | extra
    assert any(not torch.equal(weights[name], start[name]) for name in start)
    assert trained.validation["left"] > 0
