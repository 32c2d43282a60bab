"""Voices: the user's own, the shipped ones, and how they are told apart."""

import csv
import hashlib
import json
import os
import re
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
import soundfile

from paretone.errors import PlainError, TextError
from paretone.models import load_model, voices
from paretone.models.base import Voice
from paretone.models.catalogue import voice
from paretone.models.f5.adapter import F5Speech
from paretone.models.families.voices import transcript_of
from paretone.models.voices import Origin, is_own, origin_of, own_voice, shipped_names, shipped_voices, shown_name
from paretone.setting.profile import Profile
from paretone.studies.store import DATABASE
from paretone.training.natural_teacher import original_speech
from tests.engine.command_line import Console
from tests.engine.measure.roofline.known import keep_known_ceilings
from tests.engine.studies import small
from tests.voices import FIRST

WORDS = "The juice of lemons makes fine punch."


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    place = tmp_path / "home" / "somebody" / "my recordings" / "me: first.wav"
    place.parent.mkdir(parents=True)
    shutil.copyfile(voice(FIRST).audio, place)
    return place


def write_study(path: Path, recording: Path, sentences: str, steps: int, grid: list[int]) -> Path:
    path.write_text(
        f'sentences = {sentences}\nvoices = [{{ audio = "{recording}", transcript = "{WORDS}" }}]\n'
        f"[options]\nsteps = {steps}\ncross_fade = 0.0\n[grid]\nsteps.steps = {grid}\n",
        encoding="utf-8",
    )
    return path


def contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_an_id_is_the_files_name_and_fingerprint(recording: Path) -> None:
    mine = own_voice(recording, "What I say.")
    assert mine.id == f"own:me: first.wav:{hashlib.sha256(recording.read_bytes()).hexdigest()[:16]}"
    assert (mine.title, mine.audio, mine.transcript) == ("me: first", str(recording), "What I say.")
    assert is_own(mine.id) and not is_own(FIRST)
    assert (shown_name(mine.id), shown_name(FIRST)) == ("me: first.wav", FIRST)
    with recording.open("ab") as file:
        file.write(b"more")
    assert own_voice(recording).id != mine.id
    assert own_voice(recording.with_name("gone.wav")).id == "own:gone.wav"


def test_ids_of_earlier_versions_lose_their_folders(recording: Path) -> None:
    mine = own_voice(recording)
    assert voices.with_folder(mine) == f"own:{recording}" and voices.with_folder(voice(FIRST)) == FIRST
    assert voices.without_folder(f"own:{recording}") == voices.without_folder(mine.id) == mine.id
    assert voices.without_folder("own:/gone/me.wav") == "own:me.wav"
    assert voices.without_folder("own:C:\\Users\\me\\me.wav") == "own:me.wav"
    assert shown_name("own:/gone/me.wav") == "me.wav"
    assert voices.without_folder(FIRST) == FIRST


def test_a_profile_names_a_recording_without_its_folder(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, console: Console
) -> None:
    monkeypatch.setattr("paretone.models.load_model", small.load)
    kept, own = tmp_path / "p.json", ("--voice", recording, "--transcript", WORDS)
    speak = "speak", "--text", "One.", "--quiet", "--out"
    console.out(*speak, tmp_path / "o.wav", *own, "--steps", 2, "--keep-profile", kept)
    assert str(tmp_path).encode() not in kept.read_bytes() and b"somebody" not in kept.read_bytes()
    assert Profile.load(kept).evidence.voice == own_voice(recording).id
    # One of an earlier version, too.
    data = json.loads(kept.read_text(encoding="utf-8"))
    data["evidence"]["voice"] = f"own:{recording}"
    assert Profile.from_json(data).to_json()["evidence"]["voice"] == own_voice(recording).id
    run = *speak, tmp_path / "b.wav", "--profile", kept
    assert "measured with the recording me: first.wav, which is not part of it" in console.refusal(*run, code=4)
    console.out(*run, *own)
    assert (tmp_path / "b.wav").read_bytes() == (tmp_path / "o.wav").read_bytes()


def test_a_studys_report_names_files_without_their_folders(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, console: Console
) -> None:
    monkeypatch.setattr("paretone.models.load_model", small.load)
    words = recording.with_name("words.txt")
    words.write_text("One sentence.\nAnother one.", encoding="utf-8")
    study = write_study(tmp_path / "home" / "mine.toml", recording, f'"{words}"', 4, [2, 3])
    read = F5Speech.script

    def hoarse(self: object, text: str, *rest: object) -> object:
        if text == "Another one.":
            raise OSError(f"{recording} could not be read")
        return read(self, text, *rest)

    monkeypatch.setattr(F5Speech, "script", hoarse)
    console.out("study", "run", study, "--quiet")
    with closing(sqlite3.connect(study.with_suffix(".study") / DATABASE)) as earlier, earlier:
        # As earlier versions have it; what identifies a take did not change.
        earlier.execute("UPDATE takes SET voice = ?", (f"own:{recording}",))
        first = hashlib.sha256(json.dumps(["One sentence.", f"own:{recording}"]).encode()).hexdigest()[:16]
        assert {key for (key,) in earlier.execute("SELECT utterance FROM takes")} == {first}
    console.out("study", "export", study, "--quiet")
    report = study.with_suffix(".study") / "report"
    assert b"somebody" not in contents(report) and str(tmp_path).encode() not in contents(report)
    (row, *_) = csv.DictReader((report / "takes.csv").open(encoding="utf-8"))
    assert (row["voice"], row["voice_id"]) == ("me: first.wav", own_voice(recording).id)
    page = (report / "report.html").read_text(encoding="utf-8")
    assert re.search(r"Failed: .*me: first\.wav could not be read", page)
    assert "(me: first.wav, seed" in page and "own:" not in re.sub(r"data:[^\"]*", "", page)
    assert "audio = &quot;me: first.wav&quot;" in page and "sentences = &quot;words.txt&quot;" in page
    monkeypatch.setattr(F5Speech, "script", read)
    assert console.data("study", "run", study, "--json", "--quiet")["made"] == 3


def test_views_and_rooflines_name_a_recording_without_its_folder(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, console: Console
) -> None:
    monkeypatch.setattr("paretone.models.load_model", small.load)
    keep_known_ceilings()
    own = "--text", "One.", "--voice", recording, "--transcript", WORDS, "--steps", 2, "--quiet", "--csv"
    (tmp_path / "out").mkdir()
    assert "own:" not in console.out("view", "branch-redundancy", *own, tmp_path / "out" / "v.csv")
    assert "somebody" not in console.out("roofline", *own, tmp_path / "out" / "r.csv", "--json")
    assert b"somebody" not in contents(tmp_path / "out")


def test_a_transcript_that_the_recording_does_not_say_is_doubted_before_anything_is_spoken(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, console: Console
) -> None:
    pytest.importorskip("pocketsphinx")
    model = load_model("f5-mini", device="cpu")
    for place in ("paretone.models.load_model", "paretone.setting.profile.load_model"):
        monkeypatch.setattr(place, lambda *which, **how: model)
    doubt, kept = "does not seem to say its transcript", tmp_path / "p.json"
    speak = "speak", "--text", "One.", "--steps", 1, "--out", tmp_path / "o.wav", "--voice", recording, "--transcript"
    said = console(*speak, WORDS, "--keep-profile", kept)
    assert said.code == 0 and doubt in said.err.partition("%")[0] and said.err.count(doubt) == 1, said.err
    assert doubt not in said.out, "it was said already"
    with pytest.warns(UserWarning, match=doubt):
        Profile.load(kept).synthesise("One.", own_voice(recording, WORDS))
    study = write_study(tmp_path / "mine.toml", recording, '["One."]', 2, [1])
    assert console("study", "run", study, "--quiet").err.count(doubt) == 1, "studies say it once, too"
    said = console(*speak, voice(FIRST).transcript)
    assert said.code == 0 and doubt not in said.err


def test_every_voice_has_a_title_a_recording_its_text_and_its_phones() -> None:
    shipped = shipped_voices()
    assert tuple(one.id for one in shipped) == shipped_names()
    assert len({one.title for one in shipped}) == len(shipped) > 1
    for one in shipped:
        about = soundfile.info(one.audio)
        assert one.title != one.id and one.transcript
        assert one.phones[-1][2] == pytest.approx(about.duration, abs=0.02)


def test_the_recording_of_a_shipped_voice_is_known_by_any_path_as_the_users_own(tmp_path: Path) -> None:
    for one in shipped_voices():
        shipped, folder = Path(one.audio), tmp_path / one.id
        folder.mkdir()
        link, linked, hard = folder / "link.wav", folder / "voices", folder / "hard.wav"
        link.symlink_to(shipped)
        linked.symlink_to(shipped.parent)
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
        ways = {way: path for way, path in named.items() if Path(path).exists()}
        assert {"absolute", "relative", "indirect", "link", "linked folder"} <= set(ways)
        for way, path in ways.items():
            assert origin_of(own_voice(path, one.transcript)) == origin_of(one), way


def test_the_origin_of_an_exported_voice_is_in_the_index_of_its_folder(tmp_path: Path) -> None:
    shutil.copy(shipped_voices()[0].audio, tmp_path / "mine.wav")
    index = '{"voices": {"mine": {"pitch": 1.1, "formant": 0.9}}}'
    for number, (written, expected) in enumerate(((index, Origin(1.1, 0.9)), ("[]", None), ("no index", None))):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "voices.json").write_text(written, encoding="utf-8")
        shutil.copy(tmp_path / "mine.wav", folder)
        assert origin_of(own_voice(folder / "mine.wav", "Rice.")) == expected


def test_of_a_recording_of_the_users_own_there_is_no_other_speech(tmp_path: Path) -> None:
    mine = replace(shipped_voices()[0], id="own:mine.wav", title="mine", audio=str(tmp_path / "mine.wav"))
    with pytest.raises(PlainError, match="no recording of mine saying"):
        original_speech("Rice.", mine)


@pytest.mark.parametrize(("title", "shown"), [("Anna", "'Anna'"), ("", "'a'")])
def test_a_voice_without_transcript_is_named(title: str, shown: str) -> None:
    with pytest.raises(TextError, match=f"The voice {shown} has no transcript.* It is long"):
        transcript_of(Voice("a", title, "a.wav", " \n"), " It is long")
