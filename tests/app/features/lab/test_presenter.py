"""The lab's presenter in the real window with sound; tests are held and kept, and the engine rests meanwhile."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from paretone.errors import PlainError
from paretone.listening import results, trials
from paretone.listening.trials import MUSHRA
from paretone.models.base import Utterance
from paretone.session.commands import RunStudy
from paretone.session.events import AudioReady, PreparationReport
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Take
from paretone_app.features.lab.panel import LIBRARY
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Kind, Outcome
from paretone_app.state.playing import Heard, Origin
from tests.app.holding import Posts
from tests.app.sharing import cancel_all
from tests.engine.listening.test_results import abx_session

pytestmark = pytest.mark.slow
BEFORE = "lasting_sink"
LOOKED_AT = ("lab", "takes")
PLAIN = Setting("f5-mini", seed=7)
FAST = PLAIN.with_technique(UsedTechnique("ditreducio", Values({"threshold": 0.2}), "a" * 16))
RATE = 24000
SMALL_STUDY = Path(__file__).parents[3] / "first_edition" / "small.study"


def take(number: int, setting: Setting, text: str) -> Take:
    samples = (0.1 * np.random.default_rng(number).standard_normal(RATE // 2)).astype(np.float32)
    created = f"2026-01-01T00:00:{number:02d}.000+00:00"
    return Take(f"{number:032x}", created, text, "anna", setting, RATE, samples)


TAKES = [take(2 * n + place, one, f"Sentence {n}.") for n in range(3) for place, one in enumerate((PLAIN, FAST))]


@pytest.fixture
def window(borrowed_window: MainWindow, qtbot: QtBot) -> Iterator[MainWindow]:
    """A window with sound and the lab in front. Its library has three sentences in two settings; afterwards there are
    no results, and what was chosen for a test is what is chosen at first."""
    window, lab, setup = borrowed_window, borrowed_window.panels["lab"], borrowed_window.panels["lab"].setup
    qtbot.waitUntil(lambda: window.features["player"].player.usable)
    for one in TAKES:
        window.results.takes.add(one)
    window.activateWindow()
    window.action["listening_test"].trigger()
    qtbot.waitUntil(lab.isVisible)
    first = setup.choice
    yield window
    if lab.volume is not None:
        lab.volume.leave_button.click()
    if lab.trial is not None:
        for _ in range(2):
            lab.trial.leave_button.click()
    lab.show_setup()
    for box in (setup.source, setup.method):
        box.setCurrentIndex(0)
    setup.length.setValue(first.length)
    setup.practice.setValue(first.practice)
    listening = folder_of(window) / trials.FOLDER
    if listening.is_file():
        listening.unlink()
    else:
        shutil.rmtree(listening, ignore_errors=True)
    setup.show_listeners(())
    setup.listener.setCurrentIndex(0)
    lab.shown.emit()
    qtbot.waitUntil(lambda: bool(lab.can["write_results"].reason))


def folder_of(window: MainWindow) -> Path:
    return window.results.library.folder.parent


def ask_for_a_test(window: MainWindow, length: int = 2, practice: int = 0) -> None:
    lab = window.panels["lab"]
    lab.setup.length.setValue(length)
    lab.setup.practice.setValue(practice)
    assert lab.setup.begin_button.isEnabled(), lab.setup.begin_button.toolTip()
    lab.setup.begin_button.click()


def come_to_the_volume(window: MainWindow, qtbot: QtBot, length: int = 2, practice: int = 0) -> None:
    ask_for_a_test(window, length, practice)
    qtbot.waitUntil(lambda: window.panels["lab"].volume is not None)


def begin(window: MainWindow, qtbot: QtBot, length: int = 2, practice: int = 0) -> None:
    come_to_the_volume(window, qtbot, length, practice)
    window.panels["lab"].volume.begin_button.click()
    assert window.panels["lab"].trial is not None


def compare(window: MainWindow) -> None:
    window.state.comparison.set_a(TAKES[0])
    window.state.comparison.set_b(TAKES[1])


def tick_all(window: MainWindow) -> None:
    setup = window.panels["lab"].setup
    setup.source.setCurrentIndex(setup.source.findData(LIBRARY))
    for row in range(setup.ticks.count()):
        setup.ticks.item(row).setCheckState(Qt.CheckState.Checked)


def answer(window: MainWindow) -> None:
    page = window.panels["lab"].trial
    page.hear(2)
    page.say(0)


def test_the_engine_begins_nothing_during_a_test(window: MainWindow, qtbot: QtBot) -> None:
    compare(window)
    begin(window, qtbot)
    assert not window.panels["listen"].isEnabled() and not window.action.compare.isEnabled()
    labels = window.panels["player"].findChildren(QLabel)
    assert [one.text() for one in labels if one.isVisible()] == ["A listening test is using the player."]
    assert window.state.playing.now == Heard(Origin.TEST)
    assert "listening test is on" in window.features["guide"].guide.hint.text()
    assert [place.name for place, dock in window.workspaces if dock.isVisible()] == ["lab"]
    ended: list[tuple] = []
    window.jobs.ended.connect(lambda job, outcome, _: ended.append((job.kind, outcome)))
    window.state.loading.load_model("f5-mini")
    assert "starts after the listening test" in window.notices.banner.text and window.jobs.busy
    qtbot.wait(300)
    assert ended == [], "it waits"
    window.action.cancel.trigger()
    qtbot.waitUntil(lambda: ended == [(Kind.LOAD, Outcome.CANCELLED)])
    window.state.loading.load_model("f5-mini")
    session = window.panels["lab"].trial.session
    while not session.finished:  # A starved machine voids trials.
        answer(window)
    qtbot.waitUntil(lambda: len(ended) == 2)
    assert ended[1] == (Kind.LOAD, Outcome.FINISHED)
    assert "listening test" not in window.features["guide"].guide.hint.text()
    assert not window.workspaces["setup"].isHidden() and window.panels["listen"].isEnabled()
    qtbot.waitUntil(lambda: window.state.playing.now.origin is Origin.COMPARED)


def test_a_running_job_rests_while_a_trial_sounds(window: MainWindow, shared_posts: Posts, qtbot: QtBot) -> None:
    compare(window)
    trials_done: list[PreparationReport] = []
    ended: list[Outcome] = []
    window.bridge.reports.connect(trials_done.extend)
    window.jobs.ended.connect(lambda job, outcome, _: ended.append(outcome))
    window.state.selection.switch("ditreducio", True)
    shared_posts.hold_at(PreparationReport)
    window.features["strategy"].state.calibrate_on(
        tuple(Utterance(f"Sentence number {one}.", window.state.selection.voice) for one in range(12))
    )
    qtbot.waitUntil(lambda: bool(trials_done))
    ask_for_a_test(window)
    qtbot.waitUntil(lambda: window.jobs.held)
    shared_posts.go_on()
    qtbot.waitUntil(lambda: window.panels["lab"].volume is not None)
    window.panels["lab"].volume.begin_button.click()
    assert [one.kind for one in window.jobs.running] == [Kind.CALIBRATE], "it is in the middle of its work"
    window.bridge.drain()
    before = len(trials_done)
    page = window.panels["lab"].trial
    page.hear(2)
    qtbot.waitUntil(lambda: page.player.playing)
    qtbot.wait(400)
    window.bridge.drain()
    assert len(trials_done) == before, "nothing computes while it sounds"
    assert ended == []
    shared_posts.hold_at(PreparationReport)
    page.leave_button.click()
    page.leave_button.click()
    qtbot.waitUntil(lambda: len(trials_done) > before)
    window.action.cancel.trigger()
    shared_posts.go_on()
    qtbot.waitUntil(lambda: ended == [Outcome.CANCELLED])


def test_a_take_is_finished_before_a_test_begins(window: MainWindow, shared_posts: Posts, qtbot: QtBot) -> None:
    compare(window)
    lab = window.panels["lab"]
    ended: list[Outcome] = []
    window.jobs.ended.connect(lambda job, outcome, _: ended.append(outcome))
    window.state.selection.set_text("One. Two. Three. Four. Five. Six. Seven. Eight.")
    shared_posts.hold_at(AudioReady)
    window.state.synthesis.synthesise_baseline()
    ask_for_a_test(window)
    qtbot.waitUntil(lab.waiting.cancel_button.isVisible)
    lab.waiting.cancel_button.click()
    assert lab.setup.isVisible() and not window.jobs.held and lab.volume is None
    ask_for_a_test(window)
    qtbot.waitUntil(lab.waiting.cancel_button.isVisible)
    assert (lab.volume, ended) == (None, [])
    shared_posts.go_on()
    qtbot.waitUntil(lambda: lab.volume is not None)
    assert ended == [Outcome.FINISHED], "the take first"


def test_the_volume_is_set_and_the_test_is_practised_before_anything_counts(window: MainWindow, qtbot: QtBot) -> None:
    tick_all(window)
    lab, player = window.panels["lab"], window.features["player"].player
    come_to_the_volume(window, qtbot, 2, practice=1)
    lab.volume.leave_button.click()
    assert lab.setup.isVisible() and not window.jobs.held and window.panels["listen"].isEnabled()
    come_to_the_volume(window, qtbot, 2, practice=1)
    assert [place.name for place, dock in window.workspaces if dock.isVisible()] == ["lab"]
    lab.volume.hear(0)
    qtbot.waitUntil(lambda: player.playing)
    lab.volume.begin_button.click()
    session = lab.trial.session
    assert lab.volume is None and session.practising
    assert len({round(one.target, 3) for one in session.items}) == 1, "one volume for all sentences"
    answer(window)
    assert not session.practising and trials.read(folder_of(window) / trials.FOLDER).trials == ()
    while not session.finished:
        answer(window)
    assert sum(not one.void for one in trials.read(folder_of(window) / trials.FOLDER).trials) == 2


def test_a_test_on_the_library_is_kept_counted_and_shown(window: MainWindow, qtbot: QtBot) -> None:
    tick_all(window)
    begin(window, qtbot, 6)
    session = window.panels["lab"].trial.session
    assert {one.record.text for one in session.items} == {"Sentence 0.", "Sentence 1.", "Sentence 2."}
    with qtbot.waitSignal(window.features["lab"].carried_through):
        while not session.finished:
            answer(window)
    found = trials.read(folder_of(window) / trials.FOLDER)
    assert found.trials == tuple(
        replace(one, created=other.created) for one, other in zip(session.records, found.trials, strict=True)
    )
    hits = sum(one.order[2] == 0 and not one.void for one in found.trials)
    qtbot.waitUntil(lambda: f"{hits} of 6 right" in window.panels["lab"].results.page.toPlainText())
    (score,) = results.scores(folder_of(window) / trials.FOLDER)
    assert (score.mean, score.n) == (pytest.approx(hits / 6), 6)
    assert window.panels["lab"].setup.choice.listener == session.listener, "the same listener goes on"
    written = window.features["lab"].write_results(folder_of(window) / "exported")
    assert [path.name for path in written] == ["paired_comparison.csv"]


def test_what_was_broken_off_counts_for_nothing(window: MainWindow, qtbot: QtBot) -> None:
    compare(window)
    begin(window, qtbot, 5)
    answer(window)
    leave, listening = window.panels["lab"].trial.leave_button, folder_of(window) / trials.FOLDER
    leave.click()
    leave.click()
    assert window.panels["lab"].trial is None and "not scored" in window.notices.banner.text
    assert not window.jobs.held and window.panels["listen"].isEnabled()
    assert len(trials.read(listening).trials) == 1 and results.scores(listening) == ()
    with pytest.raises(PlainError, match="nothing to export"):
        window.features["lab"].write_results(folder_of(window))


def test_a_trial_that_cannot_be_written_ends_the_test_with_a_sentence(window: MainWindow, qtbot: QtBot) -> None:
    compare(window)
    begin(window, qtbot, 5)
    (folder_of(window) / trials.FOLDER).write_text("in the way")
    answer(window)
    said = window.notices.banner.text
    assert "could not be written" in said and "is not scored" in said
    assert window.panels["lab"].trial is None and not window.jobs.held


def test_similarity_to_the_voice_is_rated_by_keys_and_becomes_a_score(window: MainWindow, qtbot: QtBot) -> None:
    tick_all(window)
    setup = window.panels["lab"].setup
    setup.method.setCurrentIndex(setup.method.findData(trials.SIMILARITY))
    begin(window, qtbot, 4)
    page = window.panels["lab"].trial
    assert "same speaker" in page.question.text()
    assert [one.text() for one in page.answer_buttons][::4] == ["Bad  (1)", "Excellent  (5)"]
    votes = iter((5, 3, 4, 4, *(4,) * 50))
    while window.panels["lab"].trial is not None:
        for button in (0, 1):
            page.hear(button)
            qtbot.waitUntil(lambda: page.player.playing)
            page.session.heard_whole.add(button)
        assert not page.session.why_not_answer()
        page.say(next(votes))
    shown = window.panels["lab"].results.page
    qtbot.waitUntil(lambda: "MOS: how much like the voice" in shown.toPlainText())
    assert "votes by one listener" in shown.toPlainText()
    assert {one.method for one in results.scores(folder_of(window) / trials.FOLDER)} == {trials.SIMILARITY}


def test_a_take_or_voice_that_is_gone_is_a_sentence(window: MainWindow, qtbot: QtBot) -> None:
    setup, banner = window.panels["lab"].setup, window.notices.banner
    strange = [
        replace(one, id=f"{50 + n:032x}", voice="own:gone.wav:00", text="Strange.") for n, one in enumerate(TAKES[:2])
    ]
    for one in strange:
        window.results.takes.add(one)
    tick_all(window)
    setup.method.setCurrentIndex(setup.method.findData(trials.SIMILARITY))
    setup.begin_button.click()
    qtbot.waitUntil(lambda: "is not at hand" in banner.text)
    assert "gone.wav" in banner.text and window.panels["lab"].trial is None
    window.results.takes.delete([one.id for one in strange])
    setup.method.setCurrentIndex(0)
    tick_all(window)
    window.results.library.audio_path(TAKES[0].id).unlink()
    setup.begin_button.click()
    qtbot.waitUntil(lambda: "could not be read" in banner.text)
    assert window.panels["lab"].trial is None and setup.isVisible()


def test_the_tour_leads_through_a_short_test(window: MainWindow, qtbot: QtBot) -> None:
    compare(window)
    window.action["tour"].trigger()
    tour, lab = window.features["tour"], window.panels["lab"]
    while tour.course.stop.name != "blind":
        tour.card.next_button.click()
    tour.card.help_button.click()
    qtbot.waitUntil(lambda: lab.volume is not None)
    lab.volume.begin_button.click()
    assert (lab.setup.choice.length, lab.setup.choice.practice) == (4, 0)
    qtbot.waitUntil(lambda: "answer" in tour.card.hint.text())
    said = tour.card.said
    assert not any(one in said for one in ("ditreducio", "DiTReducio", "baseline")), "nobody is told which is which"
    while lab.trial is not None and not lab.trial.session.finished:
        answer(window)
    qtbot.waitUntil(lambda: tour.course.part is None)
    tour.end()


# --- Choices, results, and export ------------------------------------------------------------------------------------
def test_settings_and_sentences_come_from_the_library(window: MainWindow) -> None:
    setup = window.panels["lab"].setup
    tick_all(window)
    assert [setup.ticks.item(row).text() for row in range(setup.ticks.count())] == ["baseline", "DiTReducio δ = 0.2"]
    assert "3 sentences in common" in setup.plan.text()
    window.results.takes.add(take(50, PLAIN, "New."))
    window.results.takes.add(take(51, FAST, "New."))
    assert "4 sentences in common" in setup.plan.text()
    window.results.takes.delete([f"{51:032x}"])
    assert "3 sentences in common" in setup.plan.text()


def test_takes_of_an_open_study_are_listed_too(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    study = tmp_path / "small.study"
    shutil.copytree(SMALL_STUDY, study)
    setup = window.panels["lab"].setup
    before = setup.ticks.count()
    window.workspaces["tradeoff"].hide()
    window.results.open(study)
    qtbot.waitUntil(lambda: setup.ticks.count() > before)
    (read,) = window.results.studies.values()
    window.features["lab"].propose(MUSHRA, read.takes)
    window.features["lab"].write_test(tmp_path / "exported")
    qtbot.waitUntil(lambda: "Wrote" in window.notices.banner.text)


def test_a_test_can_be_exported(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    tick_all(window)
    assert window.panels["lab"].setup.export_button.isEnabled()
    folder = tmp_path / "exported"
    window.features["lab"].write_test(folder)
    qtbot.waitUntil(lambda: "Wrote" in window.notices.banner.text)
    (made,) = folder.iterdir()
    _, *practice, pages, _ = yaml.safe_load((made / f"{made.name}.yaml").read_text())["pages"]
    assert [one["id"] for one in practice] == ["practice_1", "practice_2"]
    pages = pages[1:]
    assert len(pages) == 16
    for page in pages:
        for path in (page["reference"], *page["stimuli"].values()):
            assert (made / Path(path).name).exists()
    assert len(list(made.glob("*.wav"))) == 6 + 1, "and the noise that the volume is set by"


def test_a_study_on_a_cluster_is_to_be_paused_first(window: MainWindow) -> None:
    window.jobs.hold()  # So that it only waits.
    compare(window)
    window.jobs.start(Kind.STUDY, lambda job: RunStudy(job, "none.toml", "", ray="local"))
    assert "A study is running on a cluster" in window.panels["lab"].setup.remarks.text()
    with pytest.raises(PlainError, match="pause the study first"):
        window.features["lab"].begin()
    cancel_all(window.jobs)
    window.jobs.release()


def test_a_choice_that_makes_no_test_says_why(window: MainWindow) -> None:
    setup, lab = window.panels["lab"].setup, window.features["lab"]
    assert "Choose two takes as A and B first." in setup.remarks.text()
    window.state.comparison.set_a(TAKES[0])
    window.state.comparison.set_b(replace(TAKES[2], setting=replace(PLAIN, seed=8)))
    assert "A and B have the same setting" in setup.remarks.text()
    for attempt in (lab.begin, lambda: lab.write_test(Path("nowhere"))):
        with pytest.raises(PlainError, match="same setting"):
            attempt()
    window.state.comparison.set_b(TAKES[3])
    assert "also differ in text" in setup.remarks.text()
    setup.method.setCurrentIndex(1)
    compare(window)
    assert not setup.export_button.isEnabled() and "no graded comparison" in setup.export_button.toolTip()


def test_damaged_results_are_reported_with_the_others(window: MainWindow, qtbot: QtBot) -> None:
    for one in abx_session("s", 12):
        path = trials.append(one, folder_of(window) / trials.FOLDER)
    path.write_text(path.read_text() + "nonsense\n")
    window.panels["lab"].shown.emit()
    page = window.panels["lab"].results.page
    qtbot.waitUntil(lambda: "12 of 16 right" in page.toPlainText())
    assert f"Damaged lines in {path}: 1." in page.toPlainText()
