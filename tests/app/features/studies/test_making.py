"""Studies in the window on the real engine: new ones, searches, and the use of their settings."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from paretone.models import catalogue
from paretone.studies import definition, example
from paretone.studies.store import Store
from paretone.studies.study import results_folder
from paretone_app.features.studies.forms import Bound, Varied
from paretone_app.features.studies.panel import CLUSTER, StudiesPanel
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Outcome
from tests.app.conftest import PATIENCE_MILLISECONDS
from tests.app.features.studies.studying import ended, opened, run_once, shown, write
from tests.engine.studies import small
from tests.voices import FIRST


# --- Making -----------------------------------------------------------------------------------------------------------
def verdict(window: MainWindow, words: str, qtbot: QtBot) -> str:
    """The dialog's verdict, once it contains ``words``."""
    maker = window.features["studies"].maker
    qtbot.waitUntil(lambda: words in maker.verdict.text(), timeout=PATIENCE_MILLISECONDS)
    return maker.verdict.text()


def test_a_study_is_made_counted_saved_and_started(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    window.state.selection.set_option("steps", 4)
    window.state.selection.set_option("cross_fade", 0.0)
    window.state.synthesis.synthesise_baseline()
    qtbot.waitUntil(lambda: not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    panel.new_button.click()
    maker = window.features["studies"].maker
    maker.title.setText("Steps of the small one")
    assert maker.path.text().endswith("studies/steps-of-the-small-one.toml")
    for box in maker.judges.values():
        box.setChecked(False)
    maker.count.setValue(2)
    maker.seeds.setText("0..1")
    maker.axes.lines[0].choose(Varied("steps", "steps", "2, 3"))
    said = verdict(window, "12 takes: 3 settings × 2 sentences × 1 voice × 2 seeds × 1 round", qtbot)
    assert "About" in said
    path = Path(maker.path.text())
    outcome, sentence = ended(window, maker.start_button.click, qtbot)
    assert outcome is Outcome.FINISHED, sentence
    assert tomllib.loads(path.read_text(encoding="utf-8")) == {
        "title": "Steps of the small one",
        "model": "f5-mini",
        "sentences": "harvard",
        "count": 2,
        "voices": [FIRST],
        "seeds": [0, 1],
        "options": {"cross_fade": 0.0, "steps": 4},
        "grid": {"steps": {"steps": [2, 3]}},
    }
    assert window.features["studies"].summary.made == 12
    assert window.features["studies"].maker is None


def test_an_evaluation_set_brings_its_own_voices(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    voice = catalogue.voices("f5-mini")[0]
    path = tmp_path / "meta.lst"
    lines = [f"{name}|{voice.transcript}|{voice.audio}|Sentence {name}.\n" for name in ("one", "two", "three")]
    path.write_text("".join(lines), encoding="utf-8")
    window.action["new_study"].trigger()
    maker = window.features["studies"].maker
    maker.sentences.setCurrentIndex(maker.sentences.findText("Evaluation set"))
    assert maker.recordings.isVisible() and maker.text_file.isVisible() and not maker.voices.isVisible()
    verdict(window, "Choose the list.", qtbot)
    maker.text_file.setText(str(path))
    maker.count.setValue(2)
    said = verdict(window, "takes: ", qtbot)
    assert "× 2 sentences × 1 voice ×" in said and "meta.lst: 3 lines, " in said and "recorded and not checked" in said
    assert maker.definition is not None and maker.definition["manifest"] == str(path)
    assert "voices" not in maker.definition and "sentences" not in maker.definition
    maker.sentences.setCurrentIndex(0)
    assert maker.voices.isVisible() and not maker.recordings.isVisible()
    maker.reject()


def test_only_what_is_filled_in_now_is_saved(panel: StudiesPanel, window: MainWindow, qtbot: QtBot) -> None:
    window.action["new_study"].trigger()
    maker = window.features["studies"].maker
    maker.count.setValue(2)  # While the first form is being checked.
    qtbot.waitUntil(maker.start_button.isEnabled, timeout=PATIENCE_MILLISECONDS)
    assert maker.definition is not None and maker.definition["count"] == 2
    maker.reject()


def test_ten_million_combinations_are_refused_with_count_and_estimate(
    panel: StudiesPanel, window: MainWindow, qtbot: QtBot
) -> None:
    window.action["new_study"].trigger()
    maker = window.features["studies"].maker
    maker.axes.lines[0].choose(Varied("first_block", "threshold", "0.0001..0.9999 by 0.0001"))
    maker.axes.add(Varied("ditreducio", "threshold", "0.001..1 by 0.001"))
    said = verdict(window, "takes (", qtbot)
    assert "this would be 49,995,000 takes (9,999,000 settings × 5 utterances)" in said
    assert "years" in said or "days" in said
    assert not maker.start_button.isEnabled()
    maker.axes.lines[0].values.setText("nonsense")
    verdict(window, "not “nonsense”", qtbot)
    maker.reject()


def test_how_long_it_takes_is_known_from_studies_as_well(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    opened(window, run_once(tmp_path), qtbot)
    assert window.state.comparison.take_a is None
    window.action["new_study"].trigger()
    assert "judging by takes without techniques" in verdict(window, "20 takes: 4 settings", qtbot)
    window.features["studies"].maker.reject()


def test_a_file_that_is_there_is_not_replaced_unasked(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    window.action["new_study"].trigger()
    maker = window.features["studies"].maker
    path = write(tmp_path)
    before = path.read_bytes()
    maker.path.setText(str(path))
    qtbot.waitUntil(maker.save_button.isEnabled, timeout=PATIENCE_MILLISECONDS)
    maker.save_button.click()
    assert "exists; type another name" in maker.verdict.text()
    assert path.read_bytes() == before
    maker.path.setText(str(tmp_path / "none" / "such" / "x.json"))
    qtbot.waitUntil(maker.save_button.isEnabled, timeout=PATIENCE_MILLISECONDS)
    maker.save_button.click()
    assert "must end in .toml" in maker.verdict.text()
    maker.reject()


# --- Searching --------------------------------------------------------------------------------------------------------
def test_a_search_is_set_up_run_and_its_answer_used(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    pytest.importorskip("optuna")
    window.state.selection.set_option("steps", 4)
    window.action["new_study"].trigger()
    maker = window.features["studies"].maker
    maker.kind.setCurrentIndex(1)
    for line in list(maker.goals.bounds):
        line.remove.click()
    for box in maker.judges.values():
        box.setChecked(False)
    maker.goals.goals[0].setCurrentIndex(maker.goals.goals[0].findData("ops_ratio"))
    maker.goals.add(Bound("log_mel_distance", "at_least", 0.0))
    maker.goals.trials.setValue(3)
    maker.count.setValue(1)
    maker.axes.lines[0].choose(Varied("steps", "steps", "1..3"))
    maker.path.setText(str(tmp_path / "found.toml"))
    verdict(window, "4 takes: 4 settings", qtbot)
    outcome, sentence = ended(window, maker.start_button.click, qtbot)
    assert outcome is Outcome.FINISHED, sentence
    found = panel.found.toPlainText()
    assert "The setting with the lowest Ops ratio whose Log-mel distance is at least 0." in found
    assert "of computing" in found
    (answer,) = [one for one in window.features["studies"].summary.rows if one.answer]
    assert window.features["studies"].summary.left == 0
    panel.table.choose(answer.key)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow, timeout=PATIENCE_MILLISECONDS)
    qtbot.keyClick(window, Qt.Key.Key_J, Qt.KeyboardModifier.ControlModifier)
    assert window.state.selection.is_used("steps")
    assert window.state.selection.knobs("steps") == answer.setting.technique("steps").knobs
    assert not window.state.selection.is_used("ditreducio")
    assert "Ctrl+E exports a profile" in window.notices.banner.text


def test_a_setting_is_used_with_its_strategy_table(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    opened(window, write(tmp_path, sentences=1, grid="ditreducio.threshold = [1.5]"), qtbot)
    outcome, sentence = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.FINISHED, sentence
    window.features["studies"].use(window.features["studies"].summary.rows[1].key)
    with Store(tmp_path / "small.study", read_only=True) as store:
        (table,) = store.artefacts().values()
    assert window.features["strategy"].state.table == table
    assert window.features["strategy"].state.threshold == 1.5
    assert window.state.availability.why_not_accelerate() == ""
    assert window.action.export_profile.isEnabled()


def test_what_is_not_installed_is_said_where_it_would_be_used(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paretone.extras.find_spec", lambda name: None)
    search = "[search]\ntrials = 2\n[search.space]\nsteps.steps = [2, 3]\n"
    path = tmp_path / "search.toml"
    path.write_text(f'sentences = ["One."]\n{search}', encoding="utf-8")
    opened(window, path, qtbot)
    assert not panel.run_button.isEnabled()
    assert "pip install 'paretone[search]'" in panel.run_button.toolTip()
    item = panel.where.model().item(panel.where.findData(CLUSTER))
    assert not item.isEnabled()
    assert "pip install 'paretone[cluster]'" in panel.where.toolTip()
    window.action["new_study"].trigger()
    assert not window.features["studies"].maker.kind.model().item(1).isEnabled()
    assert "paretone[search]" in window.features["studies"].maker.no_search.text()
    window.features["studies"].maker.reject()


@pytest.mark.parametrize("finished", [True, False], ids=["finished", "file alone"])
def test_one_press_opens_the_example(
    window: MainWindow,
    panel: StudiesPanel,
    finished: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    qtbot: QtBot,
) -> None:
    file = write(tmp_path, "example", sentences=1)
    monkeypatch.setattr(example, "FILE", file)
    presenter = window.features["studies"]
    monkeypatch.setattr(presenter, "_studies", tmp_path / "user")
    if finished:
        small.finished(tmp_path / "made.study", definition.read(file))
        example.pack(tmp_path / "made.study", results_folder(file), file)
    assert panel.example_button.isVisibleTo(panel), "the empty panel offers it"
    qtbot.mouseClick(panel.example_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: presenter.summary is not None, timeout=PATIENCE_MILLISECONDS)
    shown(window, qtbot)
    summary = presenter.summary
    assert summary.folder.parent == tmp_path / "user" and summary.title == "Small"
    assert (summary.made, summary.left) == ((3, 0) if finished else (0, 3))
    assert panel.table.isVisibleTo(panel)
    assert panel.run_button.text().replace("&", "") == ("Run again" if finished else "Run")
