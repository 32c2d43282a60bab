"""The application's state, without any window."""

import gc
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import shiboken6
from PySide6.QtCore import QObject
from PySide6.QtGui import QUndoCommand, QUndoStack
from pytestqt.qtbot import QtBot

from paretone.errors import SettingError
from paretone.sampling.actions import SkipAction
from paretone.session.commands import TimeAgain
from paretone.session.events import JobCancelled, JobFinished, ModelLoaded, TakeReady, TimedAgain
from paretone.setting.profile import Profile
from paretone.setting.setting import Setting
from paretone.setting.take import Measurements
from paretone.techniques.ditreducio.table import StrategyTable
from paretone_app.features.export import ProfileExport
from paretone_app.numbers import rough_duration
from paretone_app.shell.actions import StackAction
from paretone_app.state.app_state import UNDO_LIMIT, AppState
from paretone_app.state.cost import LETTERS_A_SECOND, LONG_SECONDS
from paretone_app.state.differences import measured_against
from paretone_app.state.editing import Edit
from paretone_app.state.jobs import Jobs
from tests.app.presenters import INFO, OPERATIONS, Presenter, calibrated


def test_nothing_can_be_done_before_the_model_is_loaded(tmp_path: Path, qtbot: QtBot) -> None:
    state = AppState(Jobs(lambda command: None))
    assert "not loaded" in state.availability.why_not_synthesise()
    with pytest.raises(SettingError, match="not loaded"):
        state.synthesis.synthesise_baseline()
    state.selection.voice = None
    with pytest.raises(SettingError, match="Choose a voice first"):
        _ = state.selection.speaker


def test_baseline_and_accelerated_share_seed_options_and_text(presenter: Presenter) -> None:
    strategy = presenter.strategy
    state = calibrated(presenter)
    state.selection.set_seed(42)
    state.synthesis.synthesise_baseline()
    state.synthesis.synthesise_accelerated()
    state.selection.set_seed(43)
    state.selection.set_text("Typed after both were asked for.")
    baseline, accelerated = (one.command for one in state.jobs.all)
    assert baseline.setting == accelerated.setting.baseline
    assert (baseline.text, baseline.voice) == (accelerated.text, accelerated.voice)
    assert (baseline.artefacts, accelerated.artefacts) == ((), (strategy.table,))
    assert accelerated.setting.technique("ditreducio").artefact == strategy.table.fingerprint
    assert all(difference.technique for difference in baseline.setting.differences(accelerated.setting))


def test_a_chapter_waits_in_the_queue_in_parts(presenter: Presenter) -> None:
    state = presenter.state
    text = "\n\n".join(f"Paragraph {number} is here. It has two sentences." for number in range(1500))
    state.selection.set_text(text)
    state.synthesis.synthesise_baseline()
    spoken = [one.command.text for one in state.jobs.all]
    assert len(spoken) > 30 and max(map(len, spoken)) <= 2000 and "\n\n".join(spoken) == text


def test_accelerating_needs_a_table_that_fits(presenter: Presenter) -> None:
    state = presenter.state
    assert "calibrate first" in state.availability.why_not_accelerate()
    calibrated(presenter)
    assert state.availability.why_not_accelerate() == ""
    usual = state.selection.options["guidance"]
    state.selection.set_option("guidance", 3.0)
    assert "guidance" in state.availability.why_not_accelerate()
    state.selection.set_option("guidance", usual)
    assert state.availability.why_not_accelerate() == ""
    state.selection.set_option("solver", "midpoint")
    assert "Euler" in state.availability.why_not_accelerate()
    state.selection.switch("ditreducio", False)
    assert "Enable a technique" in state.availability.why_not_accelerate()


def test_the_threshold_moves_the_table_live_and_can_be_undone(presenter: Presenter) -> None:
    strategy = presenter.strategy
    state = calibrated(presenter)
    before = strategy.table
    for threshold in (0.11, 0.12, 0.2, 0.5):
        state.selection.set_knob("ditreducio", "threshold", threshold)
    assert strategy.table.skipped_share > before.skipped_share and strategy.threshold == 0.5
    assert state.cost.ops_ratio == strategy.table.ops_ratio(OPERATIONS) < 1
    assert state.undo_stack.count() == 1, "one drag is one step"
    state.undo_stack.undo()
    assert (strategy.table, strategy.threshold) == (before, 0.1)
    state.undo_stack.redo()
    assert strategy.threshold == 0.5


def test_a_table_comes_back_with_the_steps_that_it_is_for(presenter: Presenter) -> None:
    strategy, state = presenter.strategy, calibrated(presenter)
    state.selection.set_knob("ditreducio", "threshold", 0.5)
    edited = strategy.table.changed(2, 3, SkipAction.BS)
    strategy.replace_table(edited, "set layer 1, step 2 to temporal skip")
    state.editing.set_option("steps", 8)
    assert state.undo_stack.count() == 3 and strategy.problem()
    state.undo_stack.undo()
    assert (strategy.table, strategy.problem()) == (edited, ""), "as it was edited, not as it was calibrated"
    state.undo_stack.undo()
    state.undo_stack.undo()
    assert strategy.threshold == 0.1
    for _ in range(3):
        state.undo_stack.redo()
    assert state.selection.options["steps"] == 8


def test_a_table_edited_back_to_the_calibrated_one_is_not_called_edited(presenter: Presenter) -> None:
    strategy = presenter.strategy
    state = calibrated(presenter)
    table = strategy.table
    was = table.actions[1][2]
    other = next(one for one in (SkipAction.NONE, SkipAction.TS) if one is not was)
    strategy.replace_table(table.changed(1, 2, other), "edit")
    assert strategy.is_edited and strategy.table.by_hand
    # As a table that was opened again, and no longer knows what it was.
    back = StrategyTable.from_json(strategy.table.to_json()).changed(1, 2, was)
    assert back.by_hand
    strategy.replace_table(back, "edit")
    assert not strategy.is_edited and strategy.table is table, "it is the calibrated one"
    assert "edited" not in strategy.origin[1]
    for _ in range(3):
        state.undo_stack.undo()
        assert strategy.is_edited and strategy.table.by_hand
        state.undo_stack.redo()
        assert strategy.table is table


def test_takes_become_a_and_b_and_the_distance_is_measured(presenter: Presenter, tmp_path: Path) -> None:
    state = calibrated(presenter)
    added = []
    state.synthesis.take_added.connect(added.append)
    state.follow(TakeReady(1, presenter.take(state.selection.baseline_setting, "base", mel=1.0), OPERATIONS))
    state.follow(TakeReady(2, presenter.take(state.selection.setting, "fast", mel=1.5), OPERATIONS))
    base, fast = state.comparison.take_a, state.comparison.take_b
    assert (base.id, fast.id, fast.fidelity_to) == ("base", "fast", "base") and added[1] is fast
    assert fast.log_mel_distance == pytest.approx(0.5)
    ProfileExport(state).profile().save(tmp_path / "p.json")
    profile = Profile.load(tmp_path / "p.json")
    assert (profile.setting, profile.artefact("table")) == (state.selection.setting, presenter.strategy.table)
    assert profile.evidence.metrics["speed_up"] == pytest.approx(1.0)
    fast = presenter.take(state.selection.setting, "fast")
    assert measured_against(fast, None) is fast, "no distance is measured to what is not the baseline"
    assert measured_against(fast, presenter.take(replace(state.selection.baseline_setting, seed=9))) is fast


def test_a_take_of_other_weights_is_not_the_current_baseline(presenter: Presenter) -> None:
    state = calibrated(presenter)
    take = presenter.take(state.selection.baseline_setting, text=state.selection.text)
    for checkpoint, current in (("", True), (state.selection.loaded.fingerprint, True), ("a" * 64, False)):
        state.comparison.set_a(replace(take, checkpoint=checkpoint))
        assert state.synthesis.baseline_is_current is current
        state.comparison.set_b(replace(take, setting=state.selection.setting, checkpoint=checkpoint))
        assert state.synthesis.accelerated_is_current is current


def test_a_take_can_be_run_again(presenter: Presenter) -> None:
    state = calibrated(presenter)
    take = presenter.take(replace(state.selection.setting, seed=77), text="Read verse out loud for pleasure.")
    state.selection.switch("ditreducio", False)
    state.selection.set_option("speed", 1.5)
    state.selection.use_setting(take)
    assert (state.selection.setting, state.selection.text) == (take.setting, take.text)
    with pytest.raises(SettingError, match="E2TTS_Base"):
        state.selection.use_setting(replace(take, setting=replace(take.setting, model="E2TTS_Base")))


def test_a_cancelled_take_is_told_of_but_neither_a_nor_b(presenter: Presenter) -> None:
    state, added = presenter.state, []
    state.synthesis.take_added.connect(added.append)
    whole = presenter.take(state.selection.baseline_setting, "whole")
    state.follow(TakeReady(1, whole, OPERATIONS))
    cut = replace(presenter.take(state.selection.baseline_setting, "cut"), unfinished="cancelled after 1 of 2 passages")
    state.follow(TakeReady(2, cut))
    assert added == [whole, cut] and state.comparison.take_a is whole
    assert state.cost.expected_seconds(whole.setting) is not None
    other = replace(cut, text=cut.text * 9, measurements=replace(cut.measurements, seconds=99.0))
    before = state.cost.expected_seconds(whole.setting)
    state.follow(TakeReady(3, other))
    assert state.cost.expected_seconds(whole.setting) == before, "nothing is estimated from a part"


def test_a_and_b_are_timed_again_and_have_medians_from_then_on(presenter: Presenter) -> None:
    state, told = presenter.state, []
    made = state.synthesis
    made.timed_again.connect(lambda take, runs: told.append((take, runs)))
    assert made.why_not_time_again() == "Make a take first."
    checkpoint = state.selection.info.fingerprint
    one = replace(presenter.take(state.selection.baseline_setting, "one"), checkpoint=checkpoint)
    state.comparison.set_a(one)
    state.comparison.set_b(one)
    made.time_again()
    commands = [command for command in presenter.sent if isinstance(command, TimeAgain)]
    assert [(command.take, command.times) for command in commands] == [("one", 5)], "once, though it is A and B"
    assert (commands[0].text, commands[0].voice.id, commands[0].setting) == (one.text, one.voice, one.setting)
    runs = tuple(replace(one.measurements, seconds=seconds) for seconds in (3.0, 2.0, 9.0))
    state.follow(TimedAgain(commands[0].job, "one", runs))
    assert told == [("one", runs)] and state.comparison.take_a.measurements.real_time_factor == 1.5
    assert state.comparison.take_b.repeats == runs


def _sides(presenter: Presenter, **of_b: object) -> AppState:
    """A, which the loaded model made, and B, which differs."""
    state = presenter.state
    one = replace(presenter.take(state.selection.baseline_setting, "one"), checkpoint=state.selection.info.fingerprint)
    state.comparison.set_a(one)
    state.comparison.set_b(replace(one, id="two", **of_b))
    return state


def test_a_side_of_another_model_is_said_to_be_left_out(presenter: Presenter) -> None:
    state, ended = _sides(presenter, setting=Setting("lm-mini")), []
    state.synthesis.timing_ended.connect(ended.append)
    assert state.synthesis.why_not_time_again() == ""
    said = "B cannot be timed again. It is of LM mini. Load that model first (menu Model)."
    assert state.synthesis.left_out() == said
    state.synthesis.time_again()
    (command,) = (one for one in presenter.sent if isinstance(one, TimeAgain))
    assert command.take == "one"
    state.comparison.set_a(None)
    assert state.synthesis.left_out() == "" and state.synthesis.why_not_time_again() == said
    state.jobs.handle(JobFinished(command.job))
    assert ended == [said], "of the sides that there were"


def test_what_was_timed_before_a_cancel_is_kept_and_said(presenter: Presenter) -> None:
    state, ended = _sides(presenter), []
    state.synthesis.timing_ended.connect(ended.append)
    state.synthesis.time_again()
    first, _ = (one.command for one in state.jobs.all)
    run = state.comparison.take_a.measurements
    state.follow(TimedAgain(first.job, "one", (run, run)))
    state.jobs.cancel(state.jobs.waiting[0])
    assert ended == []
    state.jobs.handle(JobCancelled(first.job))
    said = "Timing A cancelled after 2 of 5 repeats, which are kept: its times are now those of 2 repeats, as medians."
    assert ended == [said] and len(state.comparison.take_a.repeats) == 2
    state.synthesis.time_again()
    while state.jobs.running:
        state.jobs.handle(JobFinished(state.jobs.running[0].number))
    assert ended == [said, ""]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"unfinished": "cancelled after 1 of 2 passages"}, "only whole takes"),
        ({"checkpoint": "f" * 64}, "other weights"),
        ({"voice": "nobody"}, "no voice"),
        ({"setting": Setting("lm-mini")}, "Load that model first"),
    ],
)
def test_what_cannot_be_timed_again_says_why(presenter: Presenter, changes: dict, why: str) -> None:
    state = presenter.state
    state.comparison.set_a(replace(presenter.take(state.selection.baseline_setting, "one"), **changes))
    assert why in state.synthesis.why_not_time_again()
    with pytest.raises(SettingError, match=why):
        state.synthesis.time_again()


# --- Undo and redo ----------------------------------------------------------------------------------------------------
@pytest.fixture
def state(qapp) -> AppState:
    return AppState(Jobs(lambda command: None))


def test_every_choice_comes_back_in_turn(state: AppState) -> None:
    selection, editing, stack = state.selection, state.editing, state.undo_stack
    first, seen = selection.choices, [selection.choices]
    technique = next(one for one in selection.techniques if not selection.is_used(one.name))
    for change in (
        lambda: editing.set_option("steps", 9),
        lambda: editing.switch(technique.name, True),
        lambda: editing.choose_voice(selection.voices[1].id),
        lambda: editing.set_text("Another sentence."),
        lambda: editing.set_text("Another sentence!", typed=True),
        lambda: editing.set_seed(7),
        lambda: editing.set_seed_locked(False),
    ):
        change()
        seen.append(selection.choices)
    names = [stack.text(index) for index in range(stack.count())]
    assert names[0] == "set steps 9" and names[1] == f"switch on {technique.title}" and names[3] == "choose sentence"
    assert names[2].startswith("choose voice ") and names[4:] == ["edit text", "set seed 7", "unlock seed"]
    for before in reversed(seen[:-1]):
        stack.undo()
        assert selection.choices == before
    assert selection.choices == first and not stack.canUndo()
    for after in seen[1:]:
        stack.redo()
        assert selection.choices == after


def test_a_knob_that_is_moved_on_and_on_is_one_entry(state: AppState) -> None:
    selection, editing, stack = state.selection, state.editing, state.undo_stack
    before = selection.options["steps"]
    for steps in (9, 8, 7):
        editing.set_option("steps", steps)
    assert stack.count() == 1 and stack.undoText() == "set steps 7"
    editing.set_option("guidance", 1.5)
    assert stack.count() == 2 and stack.undoText() == "set guidance 1.5"
    stack.undo()
    stack.undo()
    assert selection.options["steps"] == before


def test_only_what_was_changed_by_an_edit_is_undone(state: AppState) -> None:
    selection, editing, stack = state.selection, state.editing, state.undo_stack
    before = selection.options["steps"]
    editing.set_option("steps", 9)
    editing.set_option("steps", before)
    editing.set_option("steps", before)
    assert not stack.canUndo()
    with pytest.raises(SettingError):
        editing.set_option("steps", -1)
    assert not stack.count() and selection.options["steps"] == before, "what is refused makes no entry"
    setting = selection.baseline_setting
    editing.set_option("steps", 6)
    editing.adopt_setting(setting)
    assert stack.undoText() == "use setting of a study" and selection.setting.techniques == ()
    editing.set_option("steps", 9)
    selection.set_seed(41)
    stack.undo()
    assert selection.seed == 41


def test_a_stack_outlives_its_actions(qtbot) -> None:
    """When a window ends, its actions may end before the stack does, and the stack tells of its emptying still."""
    owner, stack = QObject(), QUndoStack()
    StackAction(stack, "undo", "Undo", owner)
    StackAction(stack, "redo", "Redo", owner)
    stack.push(QUndoCommand("threshold"))
    shiboken6.delete(owner)
    with qtbot.captureExceptions() as raised:
        stack.clear()
    assert raised == []


def test_the_oldest_entries_are_forgotten_with_what_they_hold(qtbot) -> None:
    """Entries of deleted takes hold the audio: hours of work must not keep all of it."""
    state = AppState(Jobs(lambda command: None))
    audio = [np.zeros(1) for _ in range(UNDO_LIMIT + 30)]
    kept = [weakref.ref(one) for one in audio]
    put: list[np.ndarray] = []
    while audio:
        state.undo_stack.push(Edit("delete a take", audio.pop(0), None, put.append))
    put.clear()
    assert state.undo_stack.count() == UNDO_LIMIT
    gc.collect()
    assert [one() is not None for one in kept] == [False] * 30 + [True] * UNDO_LIMIT


# --- How long it will take --------------------------------------------------------------------------------------------
def measured(presenter: Presenter, text: str, seconds: float, accelerated: bool = False) -> None:
    """A take of ``text`` took ``seconds``, nine tenths of them in the backbone."""
    state = presenter.state
    setting = state.selection.setting if accelerated else state.selection.baseline_setting
    take = presenter.take(setting, text=text)
    figures = Measurements(seconds=seconds, audio_seconds=2.0, backbone_seconds=0.9 * seconds)
    state.follow(TakeReady(9, replace(take, measurements=figures), OPERATIONS))


def test_the_estimate_is_for_the_whole_text(presenter: Presenter) -> None:
    state = presenter.state
    setting = state.selection.baseline_setting
    state.selection.set_text("x" * 30_000)
    assert state.cost.expected_seconds(setting) is None
    measured(presenter, "y" * 50, 2.0)
    assert state.cost.expected_seconds(setting) == pytest.approx(1200.0)
    state.selection.set_seed(77)
    assert state.cost.expected_seconds(state.selection.baseline_setting) == pytest.approx(1200.0)
    state.selection.set_text("y" * 50)
    assert state.cost.expected_seconds(setting) == pytest.approx(2.0)


@pytest.mark.parametrize("other", [{"fingerprint": "a" * 64}, {"device": "cuda"}])
def test_other_weights_and_devices_take_another_time(presenter: Presenter, other: dict[str, str]) -> None:
    state = presenter.state
    setting = state.selection.baseline_setting
    measured(presenter, "y" * 50, 2.0)
    state.follow(ModelLoaded(1, replace(INFO, id="lm-mini"), 0.1))
    state.follow(ModelLoaded(1, INFO, 0.1))
    assert state.cost.expected_seconds(setting) is not None
    state.follow(ModelLoaded(1, replace(INFO, **other), 0.1))
    assert state.cost.expected_seconds(setting) is None


def test_what_techniques_save_comes_off_the_backbones_share_until_they_were_measured(presenter: Presenter) -> None:
    state = calibrated(presenter)
    measured(presenter, "y" * 50, 2.0)
    state.selection.set_text("y" * 100)
    ratio = state.cost.ops_ratio
    assert ratio is not None
    assert state.cost.expected_seconds(state.selection.setting) == pytest.approx(4.0 * (0.1 + 0.9 * ratio))
    measured(presenter, "y" * 50, 1.5, accelerated=True)
    assert state.cost.expected_seconds(state.selection.setting) == pytest.approx(3.0)


def test_more_than_five_minutes_are_asked_about(presenter: Presenter) -> None:
    state = presenter.state
    setting = state.selection.baseline_setting
    assert state.cost.why_ask(setting) == ""
    state.selection.set_text("x" * int(LETTERS_A_SECOND * LONG_SECONDS * 2))
    assert "about 10 min of speech" in state.cost.why_ask(setting)
    for spoken, seconds in ("y" * 9000, 250.0), ("No.", 0.4):  # As long as a second of speech.
        measured(presenter, spoken, seconds)
        assert state.cost.why_ask(setting) == ""
    measured(presenter, "y" * 9000, 1900.0)
    assert state.cost.why_ask(setting) == "Speaking the whole text takes about 32 min on this machine."
    for seconds, text in ((2.12, "2.1 s"), (31.6, "32 s"), (9000.0, "2.5 h")):
        assert rough_duration(seconds) == text
    assert rough_duration(2.12, tenths=False) == "2 s"
