"""What is on disk is read once after each change, for everybody; points are worked out only while they are seen."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from paretone.setting.library import DATABASE, Library
from paretone.studies.store import Store
from paretone_app.results.reader import Results
from paretone_app.results.takes import open_library, replace_damaged
from paretone_app.state.app_state import AppState
from paretone_app.state.jobs import Jobs
from paretone_app.widgets.panel_parts import ShownPanel
from tests.app.damage import spoil
from tests.app.features.takes.test_panel import take
from tests.engine.studies.small import finished, study

SENTENCES = ["This is sentence 0.", "This is sentence 1."]


@pytest.fixture(scope="module")
def finished_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results") / "small.study"
    finished(folder, study(sentences=SENTENCES, grid=None, setting=[{"techniques": {"steps": {"steps": 2}}}]))
    return folder


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often takes and artefacts were read."""
    counted: Counter[str] = Counter()

    def count(kind: type, name: str) -> None:
        plain: Callable[..., Any] = getattr(kind, name)

        def counting(*arguments: object, **named: object) -> object:
            counted[f"{kind.__name__}.{name}"] += 1
            return plain(*arguments, **named)

        monkeypatch.setattr(kind, name, counting)

    count(Store, "artefacts")
    count(Store, "trials")
    count(Library, "summaries")
    return counted


@pytest.fixture
def results(tmp_path: Path, reads: Counter[str], qtbot: QtBot) -> Iterator[Results]:
    made = Results(AppState(Jobs(lambda command: None)), tmp_path)
    yield made
    made.shut_down()


@pytest.fixture
def panel(results: Results, qtbot: QtBot) -> ShownPanel:
    made = ShownPanel()
    qtbot.addWidget(made)
    results.watch(made)
    return made


def settle(results: Results, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: not results.busy)


def test_a_study_is_read_once_for_everybody(
    results: Results, panel: ShownPanel, finished_study: Path, reads: Counter[str], qtbot: QtBot
) -> None:
    panel.show()
    settle(results, qtbot)
    changed: list[Path] = []
    results.study_changed.connect(changed.append)
    results.open(finished_study)
    settle(results, qtbot)
    assert changed == [finished_study] and (reads["Store.trials"], reads["Store.artefacts"]) == (1, 1)
    read = results.studies[finished_study]
    assert read.made == 4 and len(results.points) == 2 and {one.id for one in results.all_takes} == set(read.takes)
    for _ in range(4):
        results.read_study(finished_study)
    settle(results, qtbot)
    assert reads["Store.trials"] == 3, "once for the first, once for all that were asked for meanwhile"
    results.close(finished_study)
    assert results.points == () and results.studies == {} and changed[-1] == finished_study


def test_points_are_worked_out_once_somebody_sees_them(
    results: Results, panel: ShownPanel, finished_study: Path, reads: Counter[str], qtbot: QtBot
) -> None:
    results.open(finished_study)
    results.takes.add(take(1))
    settle(results, qtbot)
    assert results.studies[finished_study].made == 4, "the summary is there"
    assert results.points == () and reads["Store.artefacts"] == 0
    panel.show()
    settle(results, qtbot)
    assert len(results.points) == 3 and results.taken == {take(1).id}
    panel.hide()
    results.read_study(finished_study)
    settle(results, qtbot)
    assert len(results.points) == 3 and reads["Store.artefacts"] == 1, "they stay as they were"
    point = next(one for one in results.points if one.folder is not None)
    assert len(results.take_of(point, point.sounds[0]).samples) > 1000


def test_takes_are_kept_in_memory(results: Results, reads: Counter[str]) -> None:
    told: list[int] = []
    results.takes.changed.connect(lambda: told.append(len(results.takes.all)))
    for number in range(3):
        results.takes.add(take(number))
    results.takes.star([take(0).id], True)
    deleted = results.takes.delete([take(1).id])
    assert told == [1, 2, 3, 3, 2] and [one.starred for one in results.takes.all] == [False, True]
    assert results.takes.all == results.library.summaries()
    assert reads["Library.summaries"] == 2, "at the beginning, and here"
    results.takes.restore(deleted)
    assert {one.id for one in results.takes.all} == {take(number).id for number in range(3)}


def test_a_folder_that_cannot_be_used_is_told_and_not_offered_to_be_set_aside(tmp_path: Path) -> None:
    blocked = tmp_path / "takes"
    blocked.write_text("not a folder")
    opened = open_library(blocked)
    with opened.library as library:
        assert "takes" in opened.problem and library.folder != blocked
        assert opened.damaged is None


@pytest.mark.parametrize("readable", [False, True])
def test_a_damaged_library_is_replaced_and_the_takes_made_meanwhile_move_in(tmp_path: Path, readable: bool) -> None:
    spoil(tmp_path, readable)
    opened = open_library(tmp_path)
    assert opened.damaged == tmp_path
    temporary = opened.library.folder
    assert (temporary == tmp_path) is bool(opened.library.damage) is readable
    made = [] if readable else [opened.library.add(take(number)) for number in range(2)]
    replaced = replace_damaged(opened)
    with replaced.library as library:
        assert (library.folder, library.damage) == (tmp_path, "") and library.summaries() == tuple(reversed(made))
        assert replaced.damaged is None
    (backup,) = tmp_path.glob("damaged-*")
    assert (backup / DATABASE).exists() and str(backup) in replaced.problem
    assert readable or not temporary.exists()


@pytest.mark.parametrize("readable", [False, True])
def test_what_cannot_be_set_aside_stays_in_use(tmp_path: Path, readable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(tmp_path, readable)
    opened = open_library(tmp_path)

    def refuse(path: Path, target: Path) -> None:
        raise PermissionError(13, "Permission denied", str(target))

    monkeypatch.setattr(Path, "rename", refuse)
    replaced = replace_damaged(opened)
    with replaced.library as library:
        assert "could not be moved" in replaced.problem and replaced.damaged == tmp_path
        assert (library.folder == tmp_path) is readable and bool(library.damage) is readable
