"""The bench of own recordings: really read, copied, spoken and judged."""

import json
from pathlib import Path

import pytest
import soundfile

from paretone.measure.evaluation.judges import judge_named
from paretone.models import catalogue
from tests.peers import own_voices
from tests.peers.__main__ import main
from tests.peers.own_voices import COPIES, RECORDINGS

MODEL = "lm-mini"


def test_recordings_are_judged_beside_their_copies_and_what_they_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if problem := judge_named("naturalness").problem() or judge_named("voice").problem():
        pytest.skip(problem)
    monkeypatch.setattr(own_voices, "sentences", lambda: ("The rice was good.", "They went home today."))
    anna, bella = catalogue.voice("anna"), catalogue.voice("bella")
    given = ["own-voices", "--model", MODEL, "--sentences", "2", "--keep", str(tmp_path / "wav"), "--json"]
    for one in (anna, bella):
        given += ["--recording", one.audio, "--transcript", one.transcript]
    assert main(given) == 0
    report = json.loads(capsys.readouterr().out)
    recordings, copies, spoken = report["rows"]
    assert [row["speech"] for row in report["rows"]] == [RECORDINGS, COPIES, MODEL]
    assert [row["takes"] for row in report["rows"]] == [2, 2, 4]
    assert recordings["its recording"] is None and report["headline"] == spoken["its recording"]
    assert copies["its recording"] > copies["other recordings"], "the copy is of this voice, not of the other"
    assert spoken["its recording"] > spoken["other recordings"]
    for row in report["rows"]:
        assert 1 <= row["naturalness"] <= 5 and 0.9 < row["formants"] < 1.1 and 100 < row["Hz"] < 300
    kept = sorted(path.name for path in (tmp_path / "wav").glob("*.wav"))
    assert len(kept) == 8 and f"{MODEL}-{Path(anna.audio).stem}-00.wav" in kept
    assert soundfile.info(tmp_path / "wav" / kept[0]).duration > 0.5


def test_every_recording_needs_its_transcript(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["own-voices", "--recording", "a.wav", "--recording", "b.wav", "--transcript", "One."]
    assert main(given) != 0
    assert "2 recordings and 1 transcripts; give each recording its own" in capsys.readouterr().err


def test_one_sentence_gives_no_interval(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["own-voices", "--recording", "a.wav", "--transcript", "One.", "--sentences", "1"]
    assert main(given) != 0
    assert "--sentences: must be a whole number from 2" in capsys.readouterr().err
