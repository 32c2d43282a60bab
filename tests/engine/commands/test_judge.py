"""``paretone judge`` on anybody's files."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone import cli
from paretone.errors import AudioError, Cancelled, TextError
from paretone.measure.evaluation import judges
from paretone.measure.evaluation.judging import judge_files
from tests.engine.command_line import Console
from tests.engine.measure.evaluation.natural import RATE, TEXT, noisy, speech
from tests.engine.recorder import Follower


@pytest.fixture
def without_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the packages with the weights were not installed."""
    there = judges.find_spec
    absent = ("distillmos", "resemblyzer")
    monkeypatch.setattr(judges, "find_spec", lambda name: None if name in absent else there(name))


def written(path: Path, samples: np.ndarray, rate: int = RATE) -> str:
    soundfile.write(path, samples, rate, subtype="FLOAT")
    return str(path)


def tone(seconds: float, rate: int = RATE) -> np.ndarray:
    return (0.1 * np.sin(2 * np.pi * 150 * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def test_everything_is_said_of_natural_speech(tmp_path: Path, console: Console) -> None:
    for package in ("distillmos", "resemblyzer"):
        if judges.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    pytest.importorskip("pocketsphinx")
    stereo = np.stack([speech(), speech()], 1)
    names = [written(tmp_path / "stereo.wav", stereo), written(tmp_path / "noisy.wav", noisy(speech()))]
    reference = written(tmp_path / "reference.wav", speech())
    arguments = ["judge", *names, "--text", TEXT, "--reference", reference, "--diversity"]
    said = console.data(*arguments, "--json")
    clean, harmed = said["files"]
    assert clean["naturalness"] > harmed["naturalness"] + 0.5
    assert clean["voice_similarity"] == pytest.approx(1.0, abs=1e-3)
    assert (clean["word_error_rate"], clean["words"]) == (0.0, 8.0)
    assert clean["heard"] == "the birch canoe slid on the smooth planks"
    assert clean["loudness"] == pytest.approx(-25, abs=8)
    assert clean["notes"] == ["stereo.wav: 2 channels were mixed to one."]
    assert 0.02 < clean["pitch_range"] < 0.4
    assert said["means"]["naturalness"]["n"] == 2
    assert said["diversity"] == pytest.approx(0.0, abs=0.02), "one reading, twice"
    assert said["missing"] == []


def test_what_is_not_judged_is_said_the_rest_goes_on(tmp_path: Path, console: Console, without_networks: None) -> None:
    (tmp_path / "text.wav").write_text("no sound")
    names = [
        written(tmp_path / "fine.wav", tone(1.0, 44_100), 44_100),
        written(tmp_path / "silent.wav", np.zeros(RATE)),
        written(tmp_path / "short.wav", tone(0.1)),
        written(tmp_path / "nan.wav", np.r_[tone(1.0), np.nan]),
        str(tmp_path / "text.wav"),
        str(tmp_path / "gone.wav"),
    ]
    text = console.out("judge", *names)
    for part in ("is silent", "lasts 0.10 s", "values that are not numbers", "not a recording", "gone.wav; check"):
        assert part in text
    assert "pip install --no-deps distillmos==0.9.1" in text
    assert "silent.wav (not judged)" in console.refusal("judge", *names, "--strict", code=12)
    assert "resemblyzer" not in text, "nobody asked for voices"
    assert next(line for line in text.splitlines() if "fine.wav" in line).split()[1] == "1"


@pytest.mark.usefixtures("without_networks")
def test_a_single_file_that_cannot_be_judged_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["judge", written(tmp_path / "silent.wav", np.zeros(RATE))]) == AudioError.exit_code
    assert cli.main(["judge", str(tmp_path / "gone.wav")]) == AudioError.exit_code
    assert "100 %" not in capsys.readouterr().err
    fine = written(tmp_path / "fine.wav", tone(1.0))
    assert cli.main(["judge", fine, fine, fine, "--text", "One.", "--text", "Two."]) == TextError.exit_code


def test_judging_many_files_tells_how_far_it_is_and_can_be_cancelled(tmp_path: Path, without_networks: None) -> None:
    paths = [Path(written(tmp_path / f"{number}.wav", tone(0.5))) for number in range(3)]
    told: list[tuple[int, int]] = []
    found = judge_files(paths, progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert [one.file for one in found.files] == [str(path) for path in paths]
    assert found.means["loudness"].n == 3
    with pytest.raises(Cancelled):
        judge_files(paths, check=Follower(cancel_at=1).check)


def test_further_judges_the_tail_and_the_floor(tmp_path: Path, console: Console) -> None:
    pytest.importorskip("pocketsphinx")
    names = [written(tmp_path / "clean.wav", speech()), written(tmp_path / "tone.wav", tone(2.0))]
    more = ["--text", TEXT, "--with", "sim-o, whisper,melody", "--ground-truth", names[0]]
    said = console.data("judge", *names, *more, "--json")
    clean, lost = said["files"]
    assert (clean["failed_takes"], lost["failed_takes"]) == (0.0, 1.0)
    assert said["means"]["failed_takes"]["value"] == 0.5
    assert said["worst"] == [names[1]]
    assert [one["word_error_rate"] for one in said["ground_truth"]] == [0.0]
    missing = " ".join(said["missing"])
    assert "compares with a voice; give --reference." in missing, "SIM-o by its usual name"
    assert "Word errors (Whisper-large-v3) " in missing, "which this machine cannot have"
    out = console.out("judge", *names, "--text", TEXT)
    assert f"Most errors: {names[1]} " in out and "give --ground-truth, a person saying the text." in out
    assert "There is no judge named 'ear'" in console.refusal("judge", names[0], "--with", "ear")
