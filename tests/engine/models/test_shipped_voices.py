from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import soundfile

from paretone import cli
from paretone.errors import PlainError
from paretone.models.own_voices import own_voice
from paretone.models.shipped_voices import origin_of, shipped_names, shipped_voices
from paretone.studies import results
from paretone.training.natural_teacher import original_speech
from tests.engine.studies import small
from tests.prompts import shortened


def test_every_voice_has_a_title_a_recording_its_text_and_its_phones() -> None:
    voices = shipped_voices()
    assert tuple(one.id for one in voices) == shipped_names()
    assert len({one.title for one in voices}) == len(voices) > 1
    for one in voices:
        about = soundfile.info(one.audio)
        assert one.title != one.id and one.transcript
        assert one.phones[-1][2] == pytest.approx(about.duration, abs=0.02)


def test_it_is_known_how_a_voice_that_ships_came_to_be_and_of_no_other(tmp_path: Path) -> None:
    voices = shipped_voices()
    assert len({origin_of(one) for one in voices}) == len(voices)
    for one in voices:
        assert origin_of(one) is not None
        assert origin_of(replace(one, audio=str(tmp_path / "mine.wav"))) is None


def paths_of(shipped: Path, folder: Path) -> dict[str, str]:
    """Ways to name the file of a shipped voice."""
    link, linked = folder / "link.wav", folder / "voices"
    link.symlink_to(shipped)
    linked.symlink_to(shipped.parent)
    hard = folder / "hard.wav"
    with suppress(OSError):  # On another file system.
        hard.hardlink_to(shipped)
    named = {
        "absolute": str(shipped),
        "relative": os.path.relpath(shipped),
        "indirect": str(shipped.parent / ".." / shipped.parent.name / shipped.name),
        "link": str(link),
        "linked folder": str(linked / shipped.name),
        "upper case": str(shipped.with_name(shipped.name.upper())),
        "hard link": str(hard),
    }
    return {way: path for way, path in named.items() if Path(path).exists()}


def test_the_recording_of_a_shipped_voice_is_known_by_any_path_as_the_users_own(tmp_path: Path) -> None:
    for one in shipped_voices():
        folder = tmp_path / one.id
        folder.mkdir()
        ways = paths_of(Path(one.audio), folder)
        assert {"absolute", "relative", "indirect", "link", "linked folder"} <= set(ways)
        for way, path in ways.items():
            assert origin_of(own_voice(path, one.transcript)) == origin_of(one), way


def test_another_recording_in_their_folder_is_nobody_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shortened(tmp_path)
    shutil.copyfile(shipped_voices()[0].audio, folder / "me.wav")
    monkeypatch.setattr("paretone.models.shipped_voices.resource", lambda *parts: folder)
    assert origin_of(own_voice(folder / "me.wav")) is None
    assert origin_of(own_voice(folder / "gone.wav")) is None
    assert origin_of(own_voice(folder / "anna.wav")) is not None


def test_comparisons_judgements_and_studies_take_such_a_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in ("hibari", "pocketsphinx", "jiwer"):
        pytest.importorskip(package)
    monkeypatch.setattr("paretone.models.load_model", small.load)
    first = shipped_voices()[0]
    ways = paths_of(Path(first.audio), tmp_path)
    own = ["--voice", ways["relative"], "--transcript", first.transcript, "--quiet"]
    assert cli.main(["speak", "--text", "One.", "--steps", "2", "--out", str(tmp_path / "o.wav"), *own]) == 0
    assert cli.main(["judge", ways["link"], "--text", first.transcript, "--reference", ways["link"], "--quiet"]) == 0
    side = "steps=4,cross_fade=0,technique=steps:steps=2"
    compare = ["compare", "baseline", side, "--text", "One word.", "--repeats", "1", "--judge", "words", "--json"]
    assert cli.main([*compare, *own]) == 0
    said = capsys.readouterr().out
    heard = json.loads(said[said.index("{") :])["judged"]
    assert heard["word_error_rate"]["reference"]["value"] < 0.5, "the judge's floor"
    study = tmp_path / "mine.toml"
    study.write_text(
        f'sentences = ["One word."]\nvoices = [{{ audio = "{ways["link"]}", transcript = "{first.transcript}" }}]\n'
        'judges = ["words"]\n[options]\nsteps = 4\ncross_fade = 0.0\n[grid]\nsteps.steps = [2]\n',
        encoding="utf-8",
    )
    assert cli.main(["study", "run", str(study), "--quiet"]) == 0
    found = results.read(study.with_suffix(".study"))
    assert found.no_reference == "" and found.references["word_error_rate"].value < 0.5


def test_of_a_recording_of_the_users_own_there_is_no_other_speech(tmp_path: Path) -> None:
    mine = replace(shipped_voices()[0], id="own:mine.wav", title="mine", audio=str(tmp_path / "mine.wav"))
    with pytest.raises(PlainError, match="no recording of mine saying"):
        original_speech("Rice.", mine)
