"""Dialogs for files and folders open where something of the kind was saved or opened last, in this session or an
earlier one, else among the documents; never in the working directory."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import soundfile
from PySide6.QtCore import QDir, QSettings, QStandardPaths
from PySide6.QtWidgets import QDialog, QFileDialog, QMainWindow, QWidget
from pytestqt.qtbot import QtBot

from paretone.audio.recording import readable_kinds, writable_kinds
from paretone_app.features.export import DestinationDialog
from paretone_app.shell import file_dialogs
from paretone_app.shell.window import MainWindow
from tests.app.conftest import SMALL, collect, run

APP = Path(file_dialogs.__file__).parents[1]
FILE, FOLDER, WRITE = "ask_for_file", "ask_for_folder", "ask_where_to_write"
PARTS = f"{SMALL} export"


class Window(QMainWindow):
    """A window with settings, as the main window has them."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.settings = QSettings(str(file), QSettings.Format.IniFormat)


@pytest.fixture
def documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for documents, while the process is in another one."""
    folder = tmp_path / "Documents"
    folder.mkdir()
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.setattr(QStandardPaths, "writableLocation", lambda kind: str(folder))
    return folder


@pytest.fixture
def make(tmp_path: Path, qtbot: QtBot) -> Iterator[Callable[[], Window]]:
    """Makes windows that share a settings file, as those of successive sessions."""
    there: list[Window] = []

    def made() -> Window:
        there.append(Window(tmp_path / "window.ini"))
        qtbot.addWidget(there[-1])
        return there[-1]

    yield made
    collect()


def asked(parent: QWidget, how: str, title: str, kinds: str, chosen: Callable[[Path], object] = print) -> QFileDialog:
    before = set(parent.findChildren(QFileDialog))
    if how == FOLDER:
        file_dialogs.ask_for_folder(parent, title, chosen)
    elif how == FILE:
        file_dialogs.ask_for_file(parent, title, kinds, chosen)
    else:
        file_dialogs.ask_where_to_write(parent, title, kinds, "name.ext", chosen)
    (dialog,) = set(parent.findChildren(QFileDialog)) - before
    return dialog


def folder_of(dialog: QFileDialog) -> Path:
    found = Path(dialog.directory().absolutePath())
    dialog.close()
    return found


def test_every_dialog_for_files_is_made_in_one_place() -> None:
    makers = [path for path in APP.rglob("*.py") if "QFileDialog" in path.read_text(encoding="utf-8")]
    assert makers == [Path(file_dialogs.__file__)]


@pytest.mark.parametrize(("how", "kinds"), [(FILE, file_dialogs.JSON), (FOLDER, ""), (WRITE, file_dialogs.JSON)])
def test_a_dialog_begins_where_the_user_was(
    make: Callable[[], Window], documents: Path, tmp_path: Path, how: str, kinds: str
) -> None:
    window, used = make(), tmp_path / "used"
    used.mkdir()
    given: list[Path] = []
    dialog = asked(window, how, "A title", kinds, given.append)
    assert Path(dialog.directory().absolutePath()) == documents
    chosen = used if how == FOLDER else used / "file"
    dialog.fileSelected.emit(str(chosen))
    dialog.close()
    assert given == [chosen]
    inside = QDialog(window)
    assert folder_of(asked(inside, how, "A title", kinds)) == used, "from a dialog of the window, too"
    window.settings.sync()
    assert folder_of(asked(make(), how, "A title", kinds)) == used, "in the next session"
    used.rmdir()
    assert folder_of(asked(window, how, "A title", kinds)) == documents, "it is gone"
    documents.rmdir()
    assert folder_of(asked(window, how, "A title", kinds)) == Path(QDir.homePath())


def test_kinds_have_folders_of_their_own(make: Callable[[], Window], documents: Path, tmp_path: Path) -> None:
    window = make()
    asked(window, WRITE, "Save the take", file_dialogs.sound()).fileSelected.emit(str(tmp_path / "take.wav"))
    assert folder_of(asked(window, FILE, "Open", file_dialogs.JSON)) == documents
    assert folder_of(asked(window, WRITE, "Sound of the group", file_dialogs.sound())) == tmp_path
    asked(window, WRITE, "Save the plot", file_dialogs.PLOTS["svg"]).fileSelected.emit(str(tmp_path / "a.svg"))
    assert folder_of(asked(window, WRITE, "Save the figure", file_dialogs.PLOTS["png"])) == tmp_path


def test_sound_is_offered_as_it_can_be_read_and_written_here(monkeypatch: pytest.MonkeyPatch) -> None:
    assert file_dialogs.sound() == f"Sound ({' '.join(f'*{one}' for one in writable_kinds())})"
    assert file_dialogs.recordings() == f"Audio ({' '.join(f'*{one}' for one in readable_kinds())})"
    monkeypatch.setattr(soundfile, "check_format", lambda form, subtype=None: form != "MP3")
    assert file_dialogs.sound() == "Sound (*.wav *.flac *.ogg)"


def test_dialogs_open_where_a_path_was_typed(make: Callable[[], Window], documents: Path, tmp_path: Path) -> None:
    window = make()
    file_dialogs.ask_where_to_write(window, "Write", file_dialogs.JSON, tmp_path / "mine.json", print)
    (dialog,) = window.findChildren(QFileDialog)
    assert dialog.selectedFiles() == [str(tmp_path / "mine.json")] and folder_of(dialog) == tmp_path
    file_dialogs.ask_where_to_write(window, "Write", file_dialogs.JSON, Path("mine.json"), print)
    assert folder_of(window.findChildren(QFileDialog)[-1]) == documents, "not the working directory"
    for start, expected in ((str(tmp_path), tmp_path), ("relative", documents), (str(tmp_path / "no"), documents)):
        file_dialogs.ask_for_folder(window, "Folder", print, start)
        assert folder_of(window.findChildren(QFileDialog)[-1]) == expected


def test_the_windows_own_dialogs_begin_so(window: MainWindow, documents: Path, tmp_path: Path, qtbot: QtBot) -> None:
    window.state.selection.switch("ditreducio", False)
    run(window, window.action.baseline, qtbot)
    qtbot.waitUntil(window.action["save_wav"].isEnabled)
    window.action["save_wav"].trigger()
    (dialog,) = window.findChildren(QFileDialog)
    assert Path(dialog.directory().absolutePath()) == documents
    dialog.fileSelected.emit(str(tmp_path))
    dialog.close()
    assert list(tmp_path.glob("take-a-*.wav"))
    window.action["save_wav"].trigger()
    assert folder_of(window.findChildren(QFileDialog)[-1]) == tmp_path
    window.action.export_profile.trigger()
    (export,) = window.findChildren(DestinationDialog)
    assert Path(export.typed).parent == documents
    export.path.setText(str(tmp_path / "mine.json"))
    export.export()
    window.action.export_profile.trigger()
    again = window.findChildren(DestinationDialog)[-1]
    assert Path(again.typed).parent == tmp_path
    again.reject()
