"""Own recordings: named by file name and fingerprint, and never by where they lie."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shutil
import sqlite3
import warnings
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from paretone import cli
from paretone.errors import PlainError
from paretone.models import load_model
from paretone.models.catalogue import MODELS, entry, voice
from paretone.models.f5.adapter import F5Speech
from paretone.models.own_voices import is_own, own_voice, shown_name, with_folder, without_folder
from paretone.setting.library import Library
from paretone.setting.profile import Profile
from paretone.setting.setting import Setting
from paretone.speaking import synthesise
from paretone.studies.store import DATABASE
from tests.engine.setting.test_library import take
from tests.engine.studies import small
from tests.voices import FIRST

WORDS = "The juice of lemons makes fine punch."


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    place = tmp_path / "home" / "somebody" / "my recordings" / "me: first.wav"
    place.parent.mkdir(parents=True)
    shutil.copyfile(voice(FIRST).audio, place)
    return place


def contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_an_id_is_the_files_name_and_fingerprint(recording: Path) -> None:
    mine = own_voice(recording, "What I say.")
    digits = hashlib.sha256(recording.read_bytes()).hexdigest()[:16]
    assert mine.id == f"own:me: first.wav:{digits}"
    assert (mine.title, mine.audio, mine.transcript) == ("me: first", str(recording), "What I say.")
    assert is_own(mine.id) and not is_own(FIRST)
    assert (shown_name(mine.id), shown_name(FIRST)) == ("me: first.wav", FIRST)
    with recording.open("ab") as file:
        file.write(b"more")
    assert own_voice(recording).id != mine.id
    assert own_voice(recording.with_name("gone.wav")).id == "own:gone.wav"


def test_ids_of_earlier_versions_lose_their_folders(recording: Path) -> None:
    mine = own_voice(recording)
    assert with_folder(mine) == f"own:{recording}" and with_folder(voice(FIRST)) == FIRST
    assert without_folder(f"own:{recording}") == without_folder(mine.id) == mine.id
    assert without_folder("own:/gone/me.wav") == "own:me.wav"
    assert without_folder("own:C:\\Users\\me\\me.wav") == "own:me.wav"
    assert shown_name("own:/gone/me.wav") == "me.wav"
    assert without_folder(FIRST) == FIRST


def test_takes_of_earlier_versions_are_read_without_folders(recording: Path, tmp_path: Path) -> None:
    with Library(tmp_path / "takes") as library:
        library.add(replace(take(), voice=f"own:{recording}"))
        (one,) = library.summaries()
        assert one.voice == library.load(one.id).voice == own_voice(recording).id


def test_a_profile_names_a_recording_without_its_folder(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("paretone.models.load_model", small.load)
    kept = tmp_path / "p.json"
    own = ["--voice", str(recording), "--transcript", WORDS]
    speak = ["speak", "--text", "One.", "--steps", "2", "--quiet", "--out", str(tmp_path / "o.wav")]
    assert cli.main([*speak, *own, "--keep-profile", str(kept)]) == 0
    assert str(tmp_path).encode() not in kept.read_bytes() and b"somebody" not in kept.read_bytes()
    assert Profile.load(kept).evidence.voice == own_voice(recording).id
    # One of an earlier version, too.
    data = json.loads(kept.read_text(encoding="utf-8"))
    data["evidence"]["voice"] = f"own:{recording}"
    assert Profile.from_json(data).to_json()["evidence"]["voice"] == own_voice(recording).id
    capsys.readouterr()
    run = ["speak", "--profile", str(kept), "--text", "One.", "--quiet", "--out", str(tmp_path / "b.wav")]
    assert cli.main(run) == 4
    assert "measured with the recording me: first.wav, which is not part of it" in capsys.readouterr().err
    assert cli.main([*run, *own]) == 0
    assert (tmp_path / "b.wav").read_bytes() == (tmp_path / "o.wav").read_bytes()


def test_a_studys_report_names_files_without_their_folders(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("paretone.models.load_model", small.load)
    words = recording.with_name("words.txt")
    words.write_text("One sentence.\nAnother one.", encoding="utf-8")
    study = tmp_path / "home" / "mine.toml"
    study.write_text(
        f'sentences = "{words}"\nvoices = [{{ audio = "{recording}", transcript = "{WORDS}" }}]\n'
        "[options]\nsteps = 4\ncross_fade = 0.0\n[grid]\nsteps.steps = [2, 3]\n",
        encoding="utf-8",
    )
    read = F5Speech.script

    def hoarse(self: object, text: str, *rest: object) -> object:
        if text == "Another one.":
            raise OSError(f"{recording} could not be read")
        return read(self, text, *rest)

    monkeypatch.setattr(F5Speech, "script", hoarse)
    assert cli.main(["study", "run", str(study), "--quiet"]) == 0
    with closing(sqlite3.connect(study.with_suffix(".study") / DATABASE)) as earlier, earlier:
        # As earlier versions have it; what identifies a take did not change.
        earlier.execute("UPDATE takes SET voice = ?", (f"own:{recording}",))
        first = hashlib.sha256(json.dumps(["One sentence.", f"own:{recording}"]).encode()).hexdigest()[:16]
        assert {key for (key,) in earlier.execute("SELECT utterance FROM takes")} == {first}
    assert cli.main(["study", "export", str(study), "--quiet"]) == 0
    report = study.with_suffix(".study") / "report"
    assert b"somebody" not in contents(report) and str(tmp_path).encode() not in contents(report)
    (row, *_) = csv.DictReader((report / "takes.csv").open(encoding="utf-8"))
    assert (row["voice"], row["voice_id"]) == ("me: first.wav", own_voice(recording).id)
    page = (report / "report.html").read_text(encoding="utf-8")
    assert re.search(r"Failed: .*me: first\.wav could not be read", page)
    assert "(me: first.wav, seed" in page and "own:" not in re.sub(r"data:[^\"]*", "", page)
    assert "audio = &quot;me: first.wav&quot;" in page and "sentences = &quot;words.txt&quot;" in page
    capsys.readouterr()
    monkeypatch.setattr(F5Speech, "script", read)
    assert cli.main(["study", "run", str(study), "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["made"] == 3


def test_views_and_rooflines_name_a_recording_without_its_folder(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("paretone.models.load_model", small.load)
    own = ["--text", "One.", "--voice", str(recording), "--transcript", WORDS, "--steps", "2", "--quiet", "--json"]
    (tmp_path / "out").mkdir()
    for command, file in ((["view", "branch-redundancy"], "v.csv"), (["roofline"], "r.csv")):
        assert cli.main([*command, *own, "--csv", str(tmp_path / "out" / file)]) == 0
        assert "somebody" not in capsys.readouterr().out
        assert cli.main([*command, *(one for one in own if one != "--json")]) == 0
        assert "own:" not in capsys.readouterr().out
    assert b"somebody" not in contents(tmp_path / "out")


def test_a_transcript_that_the_recording_does_not_say_is_doubted_before_anything_is_spoken(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pocketsphinx")
    model = load_model("f5-mini", device="cpu")
    for place in ("paretone.models.load_model", "paretone.setting.profile.load_model"):
        monkeypatch.setattr(place, lambda *which, **how: model)
    doubt = "does not seem to say its transcript"
    kept = tmp_path / "p.json"
    speak = ["speak", "--text", "One.", "--steps", "2", "--out", str(tmp_path / "o.wav"), "--voice", str(recording)]
    assert cli.main([*speak, "--transcript", WORDS, "--keep-profile", str(kept)]) == 0
    said = capsys.readouterr()
    assert doubt in said.err.partition("%")[0] and said.err.count(doubt) == 1, said.err
    assert doubt not in said.out, "it was said already"
    assert cli.main([*speak, "--transcript", WORDS, "--quiet", "--json"]) == 0
    said = capsys.readouterr()
    assert doubt in said.err and any(doubt in one for one in json.loads(said.out)["notes"])
    with pytest.warns(UserWarning, match=doubt):
        Profile.load(kept).synthesise("One.", own_voice(recording, WORDS))
    right = voice(FIRST).transcript
    assert cli.main([*speak, "--transcript", right]) == 0
    assert doubt not in capsys.readouterr().err
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        notes = Profile.load(kept).synthesise("One.", own_voice(recording, right)).notes
    assert not any("transcript" in one for one in notes)


@pytest.mark.parametrize("model", [one.id for one in MODELS if one.bundled])
@pytest.mark.parametrize(("transcript", "said"), [("今天天气很好。", "is in Chinese"), ("∂∫∂", "has no words")])
def test_a_transcript_that_a_bundled_model_cannot_read_is_refused_as_such(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str, transcript: str, said: str
) -> None:
    own = ["--voice", str(recording), "--transcript", transcript]
    assert cli.main(["speak", "--model", model, "--text", "One.", "--out", str(tmp_path / "o.wav"), *own]) != 0
    said_there = capsys.readouterr().err.splitlines()[-1]
    assert said_there.startswith(f"The transcript of the recording {said}") and "; " in said_there
    loaded, setting = load_model(model, device="cpu"), Setting(model, entry(model).options_with())
    with pytest.raises(PlainError) as raised:  # As from Python, where nobody asks before.
        synthesise(loaded, "One.", own_voice(recording, transcript), setting)
    assert str(raised.value) == said_there


def test_views_comparisons_and_studies_say_it_once(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pocketsphinx")
    model = load_model("f5-mini", device="cpu")
    monkeypatch.setattr("paretone.models.load_model", lambda *which, **how: model)
    doubt = "does not seem to say its transcript"
    own = ["--voice", str(recording), "--transcript", WORDS, "--quiet"]
    assert cli.main(["compare", "steps=2", "steps=3", "--text", "One.", "--repeats", "1", *own]) == 0
    assert capsys.readouterr().err.count(doubt) == 1
    study = tmp_path / "mine.toml"
    study.write_text(
        f'sentences = ["One."]\nvoices = [{{ audio = "{recording}", transcript = "{WORDS}" }}]\n'
        "[options]\nsteps = 2\n[grid]\nsteps.steps = [1]\n",
        encoding="utf-8",
    )
    assert cli.main(["study", "run", str(study), "--quiet"]) == 0
    assert capsys.readouterr().err.count(doubt) == 1
