"""As ``tests/engine/test_mutated_files.py``, of what only the window reads: selections, calibrations, its memory."""

import json
import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings

from paretone.paths import data_folder
from paretone_app.features.strategy.state import read_record, record_json
from paretone_app.features.studies.presenter import StudiesMemory
from paretone_app.features.tradeoff.saved import find, read
from paretone_app.shell import only_window
from paretone_app.state.app_state import AppState
from paretone_app.state.jobs import Jobs
from tests.app.features.tradeoff.test_front import SELECTED, VIEW, saved
from tests.app.records import record
from tests.engine.mutating import Kind, check, void
from tests.engine.test_first_edition import WRITTEN


def write_calibrations(root: Path) -> None:
    (root / "calibration.json").write_text(json.dumps(record_json(record())), encoding="utf-8")
    shutil.copy(next((WRITTEN / "calibrations").iterdir()), root / "first-edition.json")


def write_remembered(root: Path) -> None:
    state = AppState(Jobs(lambda command: None))
    settings = QSettings(str(root / "window.ini"), QSettings.Format.IniFormat)
    settings.setValue("selection", state.selection.remembered())
    StudiesMemory(settings).save([root / "a.study"], root / "a.study")
    settings.setValue("tradeoff", VIEW)
    settings.sync()


def recall(root: Path, path: Path) -> object:
    """What cannot be read is passed over; what was read is remembered again."""
    state = AppState(Jobs(lambda command: None))
    settings = QSettings(str(path), QSettings.Format.IniFormat)
    state.selection.recall(str(settings.value("selection", "")))
    assert state.selection.setting.model and json.loads(state.selection.remembered())
    memory = StudiesMemory(settings)
    return list(memory.places()), memory.recent


KINDS = (
    Kind(
        "selections of points", lambda root: void(saved(root)), "*.json", lambda root, path: find(read(path), SELECTED)
    ),
    Kind("calibrations", write_calibrations, "*.json", lambda root, path: read_record(path)),
    Kind("remembered", write_remembered, "*.ini", recall, forgiving=True),
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_damaged_file_is_a_sentence(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qapp: object
) -> None:
    check(kind, tmp_path, monkeypatch)


def test_a_damaged_choice_of_the_data_folder_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert only_window.choose_folder(tmp_path) == "" and only_window.chosen_folder() == tmp_path
    (file,) = (tmp_path / "config").rglob("data-folder")
    for content in (b"", b"\xff\xfe\x00", b"relative", b"/nowhere/at/all", b"/" + b"a" * 5000, b"/\x00"):
        file.write_bytes(content)
        assert only_window.chosen_folder() == data_folder()
