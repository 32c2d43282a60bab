"""``paretone samples`` on the small model."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone.audio.recording import read_recording
from paretone.commands.samples import FILE, LARGEST_BYTES
from paretone.errors import StudyError
from paretone.measure.evaluation import judges, judging
from paretone.measure.evaluation.judging import Judgement
from paretone.models import catalogue
from paretone.paths import resource
from paretone.studies import samples
from paretone.studies.samples import page
from tests.engine.command_line import Console
from tests.engine.studies import small

TEXT = "One sentence. Another one. And a third. And one more."
CHOICES = f'''
title = "Heard & seen"
text = "{TEXT}"
seed = 3
rounds = 2
introduction = "What it is."
closing = """
What it
is not.

```
some code
```
"""
[[sample]]
name = "original"
title = "Original"
[[sample]]
name = "plain"
title = "Plain"
model = "f5-mini"
options = {{ steps = 4, cross_fade = 0.0 }}
[[sample]]
name = "fast"
title = "Fast"
model = "f5-mini"
options = {{ steps = 4, cross_fade = 0.0 }}
techniques = {{ steps = {{ steps = 2 }} }}
'''


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("paretone.models.load_model", small.load)
    monkeypatch.setattr(judges, "find_spec", lambda name: None)

    def original(text: str, voice: object, recording: str = "") -> tuple[np.ndarray, int]:
        recorded = read_recording(catalogue.voice().audio)
        return recorded.samples, recorded.sample_rate

    monkeypatch.setattr(judging, "reference_speech", original)
    path = tmp_path / "heard.toml"
    path.write_text(CHOICES, encoding="utf-8")
    return path


def test_samples_are_made_with_their_page(file: Path, tmp_path: Path, console: Console) -> None:
    out, work = tmp_path / "out", tmp_path / "work"
    arguments = ["samples", file, "--out", out, "--work", work, "--json", "--quiet"]
    said = console.data(*arguments)
    assert [Path(one).name for one in said["files"]] == ["original.ogg", "plain.ogg", "fast.ogg"]
    for one in said["files"]:
        audio = soundfile.info(one)
        assert (audio.samplerate, audio.subtype) == (24_000, "VORBIS") and Path(one).stat().st_size <= LARGEST_BYTES
    original, plain, fast = said["samples"]
    assert original["setting"] is None and plain["speed_up"] == 1.0 and fast["speed_up"] > 0
    assert (fast["setting"]["seed"], fast["setting"]["techniques"][0]["technique"]) == (0, "steps")
    text = (out / "heard.md").read_text(encoding="utf-8")
    lines = text.splitlines()
    assert lines[0] == "# Heard & seen" and lines[2] == "What it is."
    assert text.endswith("\n\nWhat it is not.\n\n```\nsome code\n```\n")
    assert f"“{TEXT}”" in text and "seed 3" in text and "distillmos" in text, "the judge that is not there is named"
    (row,) = (line for line in lines if "[Fast](heard/fast.ogg)" in line)
    assert "Step pruning 2" in row and f" {fast['speed_up']:.2f} " in row
    assert max(map(len, (line for line in lines if not line.startswith("|")))) <= 120
    # What is there is not made again.
    times = {path: path.stat().st_mtime_ns for path in work.rglob("*.wav") if path.name != "original.wav"}
    assert len(times) == 2 and console.out(*arguments)
    assert {path: path.stat().st_mtime_ns for path in times} == times


def test_what_judges_say_is_in_the_table(file: Path) -> None:
    choices = samples.read(file)
    figures = {"edits": 1.0, "words": 10.0, "naturalness": 4.176, "voice_similarity": 0.9, "pitch_range": 0.2}
    made = samples.Sample(choices.samples[0], Judgement("original.wav", figures=figures))
    (row,) = (one for one in page(choices, [made], "heard", "a machine", []).splitlines() if "[Original]" in one)
    assert row.endswith("| – | – | 1 of 10 | 4.18 | 0.90 | 0.20 |")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (f'text = "{TEXT}"', "", "text is empty"),
        ('name = "fast"', 'name = "plain"', "two samples are named 'plain'"),
        ('title = "Original"', "options = { steps = 4 }", "has a setting, but no model"),
        ("seed = 3", "sede = 3", "sede"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(file: Path, before: str, after: str, message: str) -> None:
    file.write_text(CHOICES.replace(before, after), encoding="utf-8")
    with pytest.raises(StudyError, match=message) as caught:
        samples.read(file)
    assert str(file) in str(caught.value)


def test_files_that_are_not_there_or_no_toml(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="There is no file"):
        samples.read(tmp_path / "gone.toml")
    (tmp_path / "bad.toml").write_text("text = ", encoding="utf-8")
    with pytest.raises(StudyError, match="could not be read as TOML"):
        samples.read(tmp_path / "bad.toml")


def test_the_samples_of_the_documentation_are_eight_of_all_families() -> None:
    choices = samples.read(resource(*FILE))
    assert len(choices.samples) == 8 and [one.name for one in choices.samples if not one.model] == ["original"]
    assert {catalogue.entry(model).family for model in choices.models} == {"flow", "language", "masked"}
    plain = {one.model for one in choices.samples if one.model and not one.techniques}
    assert plain == set(choices.models) and sum(bool(one.techniques) for one in choices.samples) == 4
