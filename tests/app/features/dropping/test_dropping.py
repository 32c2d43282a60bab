"""What is dropped on the window goes where it belongs, and where that is is shown while it is held over it."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from paretone.models import catalogue
from paretone.setting.profile import SUFFIX
from paretone.studies.store import DATABASE
from paretone_app.features.dropping import Target, dropped
from paretone_app.features.setup.presenter import SetupPresenter
from paretone_app.features.studies.presenter import StudiesPresenter
from paretone_app.shell.bridge import Background
from paretone_app.shell.window import MainWindow
from tests.app.conftest import SMALL
from tests.app.features.export.test_export import exported
from tests.voices import FIRST

PARTS = f"{SMALL} strategy lab studies tradeoff export profiles dropping"


def made(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"0")
    return folder


def test_everything_goes_where_it_belongs(tmp_path: Path) -> None:
    for target, names in (
        (Target.VOICE, ("me.wav", "ME.FLAC", "me.m4a")),
        (Target.TEXT, ("words.txt",)),
        (Target.PROFILE, (f"mine{SUFFIX}", "mine.json")),
        (Target.STUDY, ("study.toml",)),
        (Target.NOTHING, ("picture.png", "without")),
    ):
        made(tmp_path, *names)
        assert [dropped([tmp_path / one], "").target for one in names] == [target] * len(names)
    assert dropped([made(tmp_path / "a.study", DATABASE)], "").target is Target.STUDY
    assert dropped([tmp_path / "a.study" / DATABASE], "").path == tmp_path / "a.study"
    assert dropped([made(tmp_path / "empty", "notes.txt")], "").target is Target.NOTHING
    assert dropped([], "Two words.").text == "Two words." and dropped([], " ").target is Target.NOTHING
    assert "one thing at a time, not 2" in dropped([tmp_path / "me.wav", tmp_path / "words.txt"], "").sentence
    assert "this computer" in dropped([], "", remote=True).sentence
    said = dropped([tmp_path / "picture.png"], "").sentence
    assert "picture.png cannot be used here: Paretone opens a recording, a text" in said


@pytest.mark.parametrize(
    ("name", "files", "model"),
    [
        ("F5TTS_Base", ["model_1200000.pt"], "F5TTS_Base"),
        ("F5-TTS-v1-Base", ["model.safetensors"], "F5TTS_v1_Base"),
        ("somewhere", ["model_last.pt", "vocab.txt"], "F5TTS_v1_Base"),
        ("mega", ["diffusion_transformer/model_only_last.ckpt"], "MegaTTS3"),
        ("cosy", ["llm.pt", "flow.pt"], "CosyVoice2-0.5B"),
        ("Llasa-3B", ["model.safetensors"], "Llasa-3B"),
        ("CosyVoice2-0.5B", ["pytorch_model.bin"], "CosyVoice2-0.5B"),
    ],
)
def test_a_folder_with_weights_is_a_model(tmp_path: Path, name: str, files: Sequence[str], model: str) -> None:
    found = dropped([made(tmp_path / name, *files)], "")
    assert (found.target, found.model) == (Target.MODEL, model)
    assert found.sentence == f"Load as {catalogue.entry(model).title}"
    assert dropped([tmp_path / name / files[0]], "").target is Target.MODEL, "by a file of it, too"


def test_a_folder_of_models_is_the_one_in_it_or_says_which(tmp_path: Path) -> None:
    for number, last in enumerate(("step-1", "step-2")):
        inner = made(tmp_path / "out" / last, "model.pt", "part/model.pt")
        for folder in (inner, inner / "part"):
            (folder / "config.json").write_text('{"model_type": "llama"}')
        assert number or dropped([tmp_path / "out"], "").path == inner
    assert "in out; drop one of its folders step-1, step-2." in dropped([tmp_path / "out"], "").sentence
    header = b'{"encoder.bias":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}'
    (made(tmp_path / "other", "a") / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    assert "No model here recognises the weights in other" in dropped([tmp_path / "other"], "").sentence
    header = header.replace(b"encoder.bias", b"layer.lora_A")
    (tmp_path / "other" / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    assert "other is a LoRA, what a fine-tuning adds" in dropped([tmp_path / "other"], "").sentence


BUNDLED = [one.id for one in catalogue.models() if one.bundled]


@pytest.mark.parametrize("model", BUNDLED[:1] + BUNDLED[-1:])
def test_a_bundled_model_is_recognised(tmp_path: Path, model: str) -> None:
    folder = catalogue.entry(model).folder
    # As one that was trained again or exported lies, under a name that says nothing, and by any weight file in it.
    other = tmp_path / "mine"
    for path in folder.rglob("*"):
        if path.is_file():
            (other / path.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
            (other / path.relative_to(folder)).symlink_to(path)
    for place in (folder, other):
        weights = list(place.rglob("*.safetensors"))
        assert weights
        for path in (place, *weights):
            found = dropped([path], "")
            assert (found.target, found.model, found.path) == (Target.MODEL, model, place), path
    named = dropped([made(tmp_path / f"my-{model}", "model.safetensors")], "")
    assert named.sentence == f"Load as {catalogue.entry(model).title}", "by its name alone"


class Hand:
    """Holds something over a widget."""

    def __init__(self, widget: QWidget, *urls: str, text: str = "") -> None:
        self._widget, self.data = widget, QMimeData()
        if urls:
            self.data.setUrls([QUrl(one) for one in urls])
        if text:
            self.data.setText(text)
        actions = Qt.DropAction.CopyAction | Qt.DropAction.MoveAction
        self._rest = actions, self.data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        self._event(QDragEnterEvent(QPoint(9, 9), *self._rest))

    def _event(self, event: QDropEvent) -> None:
        event.setDropAction(Qt.DropAction.MoveAction)  # As with Shift.
        event.ignore()
        QApplication.sendEvent(self._widget, event)
        assert event.isAccepted()
        assert event.dropAction() is Qt.DropAction.CopyAction, "the file stays where it is"

    def drop(self) -> None:
        self._event(QDropEvent(QPointF(9, 9), *self._rest))


def address(path: Path) -> str:
    return QUrl.fromLocalFile(str(path)).toString()


def test_a_recording_becomes_a_voice(borrowed_window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    window, path = borrowed_window, Path(shutil.copyfile(catalogue.voice(FIRST).audio, tmp_path / "me.wav"))
    overlay = window.features["dropping"].overlay
    choice = window.features.find(SetupPresenter).setup.voice_choice
    hand = Hand(window, address(path))
    assert overlay.isVisible() and overlay.sentence == "Use as voice"
    QApplication.sendEvent(window, QDragLeaveEvent())
    assert not overlay.isVisible()
    # Over a line that takes text, too: it would take the address.
    hand = Hand(choice.recording, address(path))
    hand.drop()
    assert not overlay.isVisible() and choice.recording.text() == str(path) and choice.name.text() == "me"
    qtbot.waitUntil(lambda: not choice.findChildren(Background))  # Also of a check that another replaced.
    assert "not a profile" not in window.notices.banner.text
    choice.own.setChecked(False)


def test_a_text_becomes_the_text_and_is_undone(borrowed_window: MainWindow, tmp_path: Path) -> None:
    window, chosen = borrowed_window, borrowed_window.state.selection
    before = chosen.text
    Hand(window, text="Dragged from somewhere.").drop()
    assert chosen.text == "Dragged from somewhere."
    path = tmp_path / "words.txt"
    path.write_text("From a file.\n", encoding="utf-8")
    hand = Hand(window.features.find(SetupPresenter).setup.text.viewport(), address(path))
    assert window.features["dropping"].overlay.sentence == "Use as text"
    hand.drop()
    assert chosen.text == "From a file."
    for content, said in (
        (b"\xff\xfe\x00", "words.txt is not UTF-8 (byte 1); save"),
        (b" ", "There is no text to speak"),
    ):
        path.write_bytes(content)
        Hand(window, address(path)).drop()
        assert said in window.notices.banner.text and chosen.text == "From a file."
    path.write_text("word " * 60_000)
    Hand(window, address(path)).drop()
    assert len(chosen.text) == 299_999, "the window speaks it in parts"
    for _ in range(3):
        window.state.undo_stack.undo()
    assert chosen.text == before


def test_the_others_are_opened(borrowed_window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    window = borrowed_window
    profile = exported(window, tmp_path / "mine.json")
    Hand(window, address(tmp_path / "mine.json")).drop()
    assert window.state.selection.setting == profile.setting
    window.state.undo_stack.undo()
    opened: list[object] = []
    monkeypatch.setattr(window.features.find(StudiesPresenter), "open", opened.append)
    monkeypatch.setattr(window.features.find(SetupPresenter), "load", lambda *which: opened.append(which))
    study, model = made(tmp_path / "a.study", DATABASE), made(tmp_path / "F5TTS_Base", "model_1200000.pt")
    Hand(window, address(study)).drop()
    hand = Hand(window, address(model))
    assert window.features["dropping"].overlay.sentence == "Load as F5-TTS Base (v0)"
    hand.drop()
    assert opened == [study, ("F5TTS_Base", str(model))]


def test_anything_else_is_refused_with_a_sentence(borrowed_window: MainWindow, tmp_path: Path) -> None:
    window, before = borrowed_window, borrowed_window.state.selection.choices
    picture, words = made(tmp_path, "a.png", "b.txt") / "a.png", tmp_path / "b.txt"
    for urls, said in (
        ([address(picture)], "a.png cannot be used here"),
        ([address(picture), address(words)], "one thing at a time"),
        (["https://example.org/profile.json"], "Only files of this computer"),
    ):
        hand = Hand(window, *urls)
        assert said in window.features["dropping"].overlay.sentence
        hand.drop()
        assert said in window.notices.banner.text
        window.notices.say("")
    assert window.state.selection.choices == before
