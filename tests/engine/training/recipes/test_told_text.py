"""What a model speaks that is told the text less exactly."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from paretone.errors import CheckpointError
from paretone.front_end.natural.phones import PHONES, phrases
from paretone.training.natural_corpus import evened, evened_phrases
from paretone.training.recipes.natural_f5 import ARCHITECTURE, NaturalF5, NaturalF5Options
from paretone.training.recipes.told_text import TOLD, Evaluation, ToldFrontEnd, evaluate, loading, main
from tests.engine.training.toy_natural import toy_natural_corpus

SMALL = replace(ARCHITECTURE, dim=64, depth=1, heads=1, dim_head=64, text_dim=32, conv_layers=1)
HELLO = (("^", 0.0, 0.1), ("h", 0.1, 0.2), ("ˈO", 0.2, 0.5), ("_", 0.5, 0.6), ("j", 0.6, 0.7), (".", 0.7, 1.0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model as the recipe exports it, with random weights, and a voice."""
    place = tmp_path_factory.mktemp("told")
    recipe = NaturalF5(toy_natural_corpus(), torch.device("cpu"), NaturalF5Options(), SMALL)
    with torch.no_grad():
        # A network that has learnt nothing does not look at its text.
        for weight in recipe.average.module.parameters():
            weight.add_(0.02 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)))
    recipe.export(place / "model")
    (place / "voices").mkdir()
    times = np.arange(24_000) / 24_000
    tone = 0.2 * np.sin(2 * np.pi * 200 * times) * np.sin(np.pi * times)
    soundfile.write(place / "voices" / "toy.wav", tone, 24_000)
    (place / "voices" / "toy.json").write_text(json.dumps({"text": "Oh, you.", "phones": HELLO}), encoding="utf-8")
    return place


def test_phones_are_spread_over_words_or_phrases() -> None:
    assert [[HELLO[place][0] for place in phrase] for phrase in phrases(HELLO)] == [["h", "ˈO", "_", "j"]]
    by_word, by_phrase = evened(HELLO), evened_phrases(HELLO)
    assert [one[0] for one in by_word] == [one[0] for one in by_phrase] == [one[0] for one in HELLO]
    assert by_word[1][2] == pytest.approx(0.3) and by_word[3] == HELLO[3]
    assert [one[2] - one[1] for one in by_phrase[1:5]] == pytest.approx([0.15] * 4)
    assert by_phrase[0] == HELLO[0] and by_phrase[5] == HELLO[5]


def test_the_model_is_told_text_and_prompt_by_the_alignment(folder: Path) -> None:
    told = {name: ToldFrontEnd(folder / "model", alignment).labels(HELLO, 94) for name, alignment in TOLD.items()}
    counts = {name: np.bincount(ids, minlength=len(PHONES)) for name, ids in told.items()}
    sounds = [PHONES.index(name) for name in ("h", "ˈO", "_", "j")]
    assert counts["frame"][sounds] == pytest.approx([9.4, 28.1, 9.4, 9.4], abs=1)
    assert counts["word"][sounds] == pytest.approx([18.8, 18.8, 9.4, 9.4], abs=1)
    assert counts["phrase"][sounds] == pytest.approx([14.1] * 4, abs=1)
    assert all(len(ids) == 94 for ids in told.values())


def test_each_alignment_is_a_study_over_steps_that_resumes(folder: Path, tmp_path: Path) -> None:
    one = Evaluation(folder / "model", (1, 2), 1, 1, folder / "voices", 1, judges=("melody",))
    said: list[str] = []
    rows = evaluate(one, tmp_path, ("frame", "phrase"), said.append)
    assert [(row["told by"], row["steps"]) for row in rows] == [
        ("frame", 1),
        ("frame", 2),
        ("phrase", 1),
        ("phrase", 2),
    ]
    assert said[0].endswith("tasks are done") and not any(line.startswith("Failed") for line in said)
    sounds = {path.parent.parent.name: soundfile.read(path)[0] for path in sorted(tmp_path.glob("*.study/audio/*.wav"))}
    assert len(sounds["frame.study"]) == len(sounds["phrase.study"])
    assert not np.array_equal(sounds["frame.study"], sounds["phrase.study"])
    assert (tmp_path / "frame.study" / "report" / "report.html").is_file()
    assert evaluate(one, tmp_path, ("frame",), said.append) == rows[:2]


def test_other_models_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CheckpointError, match="give the export of voice-f5"):
        loading("word")("megatts3-mini", device="cpu")
    arguments = ["--folder", str(tmp_path), "--work", str(tmp_path / "work"), "--told", "frame"]
    assert main(arguments) == CheckpointError.exit_code
    assert str(tmp_path) in capsys.readouterr().err
