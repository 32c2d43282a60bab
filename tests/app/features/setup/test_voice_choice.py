"""Recordings as voices in Setup: checked when they are chosen, named, changed, removed, and kept."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from paretone.audio.recording import read_recording
from paretone.models import catalogue
from paretone.models.voices import is_own, own_voice
from paretone_app.features.setup.choices import VoiceChoice
from paretone_app.features.setup.panel import SetupPanel
from paretone_app.state.app_state import AppState
from paretone_app.state.jobs import Jobs
from tests.app.features.setup.test_panel import type_into
from tests.app.presenters import Presenter
from tests.voices import FIRST

SHIPPED = catalogue.voice(FIRST)
GERMAN = "Guten Tag, wie geht es Ihnen heute Morgen, mein Herr?"
M4A = b"\x00\x00\x00\x1cftypM4A \x00\x00\x02\x00M4A isomiso2" + bytes(4000)


@pytest.fixture
def choice(panel: SetupPanel) -> VoiceChoice:
    return panel.voice_choice


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return Path(shutil.copyfile(SHIPPED.audio, tmp_path / "my16k.wav"))


def settled(choice: VoiceChoice, qtbot: QtBot) -> str:
    qtbot.waitUntil(lambda: choice.checking.isHidden())
    return choice.findings.text()


def use(choice: VoiceChoice, qtbot: QtBot) -> str:
    qtbot.mouseClick(choice.use_recording, Qt.MouseButton.LeftButton)
    return settled(choice, qtbot)


def test_a_recording_needs_its_words(choice: VoiceChoice, presenter: Presenter, qtbot: QtBot, recording: Path) -> None:
    problems: list[str] = []
    choice.problem.connect(problems.append)
    qtbot.mouseClick(choice.own, Qt.MouseButton.LeftButton)
    assert choice.recording.isVisibleTo(choice)
    type_into(qtbot, choice.recording, str(recording.with_name("none.wav")))
    assert "none.wav" in use(choice, qtbot) == problems[-1]
    type_into(qtbot, choice.recording, str(recording))
    assert "transcript is missing" in use(choice, qtbot)
    type_into(qtbot, choice.transcript, SHIPPED.transcript)
    use(choice, qtbot)
    voice = presenter.state.selection.voice
    assert (voice.id, voice.title, voice.audio) == (own_voice(recording).id, "my16k", str(recording))
    assert voice.transcript == SHIPPED.transcript
    assert choice.voice.currentData() == voice.id and choice.voice.currentText() == "my16k"
    assert not choice.recording.isVisibleTo(choice) and len(problems) == 2


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("me.m4a", M4A, "which Paretone cannot read; convert it to WAV or FLAC"),
        ("me.wav", None, "is silent; choose a recording of speech"),
    ],
)
def test_what_cannot_be_a_voice_is_refused_when_it_is_chosen(
    choice: VoiceChoice, presenter: Presenter, qtbot: QtBot, tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    path = tmp_path / name
    if content is None:
        soundfile.write(path, np.zeros(48_000), 24_000)
    else:
        path.write_bytes(content)
    choice.propose(path)
    assert said in settled(choice, qtbot), "before any transcript is typed"
    type_into(qtbot, choice.transcript, "What is not to be heard.")
    assert said in use(choice, qtbot)
    assert presenter.state.selection.own_voices == [] and presenter.state.selection.voice.id == FIRST
    assert not presenter.state.undo_stack.canUndo()


def test_other_words_are_doubted(choice: VoiceChoice, presenter: Presenter, qtbot: QtBot, recording: Path) -> None:
    pytest.importorskip("pocketsphinx")
    choice.propose(recording)
    type_into(qtbot, choice.transcript, "We will.")
    assert "says more than its transcript" in use(choice, qtbot)
    assert presenter.state.selection.own_voices == [] and "anyway" in choice.use_recording.text()
    choice.propose(recording)
    assert "anyway" not in choice.use_recording.text() and choice.transcript.text() == "", "another recording"
    type_into(qtbot, choice.transcript, "The juice of lemons makes fine punch.")
    assert not choice.findings.isVisibleTo(choice)
    assert "does not seem to say its transcript" in use(choice, qtbot)
    use(choice, qtbot)
    assert presenter.state.selection.voice.transcript == "The juice of lemons makes fine punch."


def test_faults_of_recordings_are_said(choice: VoiceChoice, presenter: Presenter, qtbot: QtBot, tmp_path: Path) -> None:
    heard, path = read_recording(SHIPPED.audio), tmp_path / "late.wav"
    soundfile.write(path, np.pad(heard.samples, (2 * heard.sample_rate, 0)), heard.sample_rate)
    choice.propose(path)
    assert "It begins with 2.1 s of silence." in settled(choice, qtbot)
    type_into(qtbot, choice.transcript, SHIPPED.transcript)
    use(choice, qtbot)
    assert is_own(presenter.state.selection.voice.id)
    assert "late.wav: It begins with 2.1 s" in " ".join(presenter.state.availability.notes)


def test_an_unreadable_transcript(choice: VoiceChoice, presenter: Presenter, qtbot: QtBot, recording: Path) -> None:
    choice.propose(recording)
    type_into(qtbot, choice.transcript, GERMAN)
    said = "The transcript of the recording looks like German, but the bundled models read only English"
    assert said in use(choice, qtbot) and presenter.state.selection.own_voices == []
    added(presenter, recording, GERMAN)  # With a model that reads German.
    assert said in presenter.state.availability.why_not_synthesise() == choice.note.text()
    presenter.state.own_voices.change(presenter.state.selection.voice, "Me", "What I say.")
    assert presenter.state.availability.why_not_synthesise() == "" and choice.note.text() == "“What I say.”"


def test_what_could_not_be_checked(choice: VoiceChoice, presenter: Presenter, qtbot: QtBot, recording: Path) -> None:
    presenter.state.selection.choose_model("F5TTS_v1_Base", "", "", "cpu", None)
    problems: list[str] = []
    choice.problem.connect(problems.append)
    choice.propose(recording)
    type_into(qtbot, choice.transcript, GERMAN)
    use(choice, qtbot)
    assert presenter.state.selection.voice.audio == str(recording)
    assert len(problems) == 1 and "only English words are looked for" in problems[0]


def added(presenter: Presenter, path: Path, transcript: str = "What I say.") -> None:
    presenter.state.own_voices.add(own_voice(path, transcript))


def test_voices_have_own_names(choice: VoiceChoice, presenter: Presenter, recording: Path, tmp_path: Path) -> None:
    other = tmp_path / "there" / recording.name
    other.parent.mkdir()
    soundfile.write(other, soundfile.read(SHIPPED.audio)[0][:40_000], 24_000)
    added(presenter, recording)
    added(presenter, other)
    listed = [choice.voice.itemText(index) for index in range(choice.voice.count())]
    assert listed[-2:] == ["my16k", "my16k 2"] and len(set(listed)) == len(listed)
    choice.propose(recording.with_name(f"{SHIPPED.title}.wav"))
    assert choice.name.text() == f"{SHIPPED.title} 2", "no name of a shipped voice either"


def test_voices_are_edited_and_undone(choice: VoiceChoice, presenter: Presenter, qtbot: QtBot, recording: Path) -> None:
    state = presenter.state
    assert not choice.edit.isVisibleTo(choice), "shipped voices stay as they are"
    added(presenter, recording, SHIPPED.transcript)
    qtbot.mouseClick(choice.edit, Qt.MouseButton.LeftButton)
    assert choice.transcript.text() == SHIPPED.transcript and not choice.recording.isEnabled()
    type_into(qtbot, choice.name, "Grandmother")
    use(choice, qtbot)
    assert state.selection.voice.title == choice.voice.currentText() == "Grandmother"
    assert state.undo_stack.undoText() == "rename voice my16k"
    state.own_voices.change(state.selection.voice, "Grandmother", "We will.")
    assert choice.note.text() == "“We will.”"
    recording.rename(recording.with_suffix(".moved"))
    choice.show_choice()
    assert choice.note.text() == f"The recording {recording} is missing."
    recording.with_suffix(".moved").rename(recording)
    qtbot.mouseClick(choice.remove, Qt.MouseButton.LeftButton)
    assert state.selection.own_voices == [] and state.selection.voice.id == FIRST
    assert recording.is_file() and not choice.edit.isVisibleTo(choice)
    state.undo_stack.undo()
    assert (state.selection.voice.title, choice.voice.currentText()) == ("Grandmother", "Grandmother")
    state.undo_stack.undo()
    state.undo_stack.undo()
    assert state.selection.voice.title == "my16k"
    state.undo_stack.undo()
    assert state.selection.own_voices == [] and state.selection.voice.id == FIRST
    while state.undo_stack.canRedo():
        state.undo_stack.redo()
    assert state.selection.own_voices == []


def test_names_survive_a_restart_and_hide_ids(choice: VoiceChoice, presenter: Presenter, recording: Path) -> None:
    added(presenter, recording)
    presenter.state.own_voices.change(presenter.state.selection.voice, "Grandmother", "What I say.")
    restarted = AppState(Jobs(lambda command: None))
    again = restarted.selection
    again.recall(presenter.state.selection.remembered())
    assert [one.title for one in again.own_voices] == ["Grandmother"] and again.voice.title == "Grandmother"
    texts = [one.text() for one in choice.findChildren(QLabel)]
    texts += [choice.voice.itemText(index) for index in range(choice.voice.count())]
    assert not any("own:" in text for text in texts)
