from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.errors import Cancelled, TrainingError
from paretone.models.catalogue import voices
from paretone.models.files.checkpoints import metadata_of, read_float_weights
from paretone.models.files.trained_weights import described_interval, plain_names
from paretone.setting.knobs import Values
from paretone.techniques.average_velocity import METHODS, AverageVelocityRequest
from paretone.techniques.average_velocity.recipe import fine_tune
from paretone.techniques.average_velocity.subjects import OBJECTIVE
from paretone.training import fine_tuning
from paretone.training.features import Example, Examples, collate, may_join
from paretone.training.flow_matching import draw_problem
from paretone.training.requests import Follower
from paretone.training.session import Intervals
from tests.engine.training.toy_model import toy_manifest, toy_model
from tests.packages import needs

pytestmark = needs("accelerate")


def request(model: str, folder: Path, place: Path, **more: object) -> AverageVelocityRequest:
    """Two steps of ``model`` in ``folder``, with its work and its result in ``place``."""
    given = {"folder": str(folder), "work": str(place / "work"), "export": str(place / "result"), "steps": 2}
    return AverageVelocityRequest(model=model, **given | {"teacher_steps": 2, "device": "cpu"} | more)


def _request(place: Path, **changes: object) -> AverageVelocityRequest:
    speech = {"manifest": str(place / "speech" / "manifest.csv"), "frames": 300}
    return request(**{"model": "f5-mini", "folder": place / "model", "place": place} | speech | changes)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    toy_model(tmp_path / "model")
    toy_manifest(tmp_path, clips=8)
    return tmp_path


def test_a_training_writes_weights_with_what_they_are(place: Path) -> None:
    trained = fine_tune(_request(place, guidance=Values(guidance=1.5), temperature=0.9), Follower(), Intervals())
    path = Path(trained.checkpoint)
    assert path == place / "result" / "guidance-1.5.safetensors"
    found = described_interval(metadata_of(path), str(path), "")
    assert found is not None
    assert (found.evaluations, found.sway, dict(found.guidance), found.method, found.temperature) == (
        4,
        -1.0,
        {"guidance": 1.5},
        METHODS[0],
        0.9,
    )
    weights = plain_names(read_float_weights(path))
    start = plain_names(read_float_weights(place / "model" / "model.safetensors"))
    extra = {f"time_embed.interval_mlp.{layer}.{kind}" for layer in (0, 2) for kind in ("weight", "bias")}
    assert set(weights) == set(start) | extra
    assert any(not torch.equal(weights[name], start[name]) for name in start)
    assert trained.validation["left"] > 0


def test_it_goes_on_from_weights_of_an_earlier_run(place: Path) -> None:
    first = fine_tune(_request(place), Follower(), Intervals())
    again = _request(place, initial=first.checkpoint, work=str(place / "again"), export=str(place / "second"), steps=1)
    second = fine_tune(again, Follower(), Intervals(log_steps=1, validation_steps=1, validates_first=True))
    log = [json.loads(line) for line in (place / "again" / "training.jsonl").read_text().splitlines()]
    begun = next(one["validation"] for one in log if one.get("step") == 0)
    assert begun["left"] == pytest.approx(first.validation["left"], abs=0.02), "half precision in the file"
    assert second.steps == 1
    toy_model(place / "other", {"another": "checkpoint"})
    for changes, words in (
        ({"initial": str(place / "model" / "model.safetensors")}, "holds no weights of average velocity"),
        ({"initial": first.checkpoint, "folder": str(place / "other")}, "was made from another checkpoint"),
    ):
        with pytest.raises(TrainingError, match=words):
            fine_tune(_request(place, work=str(place / "third"), **changes), Follower(), Intervals())


class Counting(Follower):
    """Counts the sentences that are spoken, and stops before the one with the number ``last``."""

    def __init__(self, last: int = 1000) -> None:
        self.spoken: list[int] = []
        self._last = last

    def progress(self, done: int, total: int) -> None:
        assert total == 5
        if done == self._last:
            raise Cancelled
        self.spoken.append(done)


def _own(place: Path, **changes: object) -> AverageVelocityRequest:
    return _request(place, **{"manifest": "", "sentences": 1, "steps": 2} | changes)


def test_a_model_learns_from_what_it_says_itself(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fine_tuning, "STEPS", 2)
    monkeypatch.setattr(fine_tuning, "PORTION", 2)
    texts = ("The rice was good.", "They went home.")
    with pytest.raises(Cancelled):
        fine_tune(_own(place, texts=texts), Counting(3), Intervals())
    first = Counting()
    trained = fine_tune(_own(place, texts=texts), first, Intervals())
    assert first.spoken == [2, 2, 3, 4, 4, 5], "two sentences were kept"
    assert trained.steps == 2 and Path(trained.checkpoint).is_file()
    (folder,) = (place / "work" / fine_tuning.FOLDER).iterdir()
    kept = [one for path in sorted(folder.glob("*.npz")) for one in fine_tuning._read(path)]
    assert [one.voice for one in kept] == [one.id for one in voices("f5-mini")], "every voice has its turn"
    for one in kept:
        frames, prompt = one.arrays["mel"].shape[0], int(one.arrays["prompt"])
        assert len(one.arrays["ids"]) == frames > prompt > 0
        assert len(np.unique(one.arrays["mel"][prompt:], axis=0)) > 1, "it said something"
    again = Counting()
    fine_tune(_own(place, texts=texts, resume=True, steps=3), again, Intervals())
    assert again.spoken == [2, 4, 5], "nothing is spoken twice"


def test_what_is_learnt_of_own_speech_comes_after_the_prompt() -> None:
    ids, mel = np.arange(12), np.ones((12, 3), np.float16)
    examples = Examples((Example("a", ids, mel, prompt=5), Example("a", ids, mel, prompt=7)), ())
    batch = collate([[one] for one in examples.training])
    assert batch.joins.tolist() == [5, 7] and not may_join(examples.training)
    problem = draw_problem(batch, OBJECTIVE, torch.Generator().manual_seed(1))
    assert problem.span.sum(1).tolist() == [7, 5] and not problem.span[0, :5].any()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "lm-mini"}, "cannot be trained here, only F5-TTS, MegaTTS 3 and the flow of CosyVoice 2"),
        ({"guidance": Values(similarity=2.0)}, "not guided by similarity; its guidance is guidance"),
        (
            {"model": "F5TTS_v1_Base", "manifest": ""},
            "needs speech to learn from: give a manifest of recordings, or a number of",
        ),
    ],
)
def test_what_cannot_be_trained_is_said(place: Path, changes: dict, words: str) -> None:
    with pytest.raises(TrainingError, match=words):
        fine_tune(_request(place, **changes), Follower(), Intervals())
