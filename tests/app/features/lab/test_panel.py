"""The pages of the listening lab as people use them: real keys on the real widgets, heard by a real sound server."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from paretone.listening import results
from paretone.listening.trials import ABX, CCR, MUSHRA, ItemRecord, TrialRecord
from paretone.measure.loudness import integrated_loudness
from paretone_app.audio.mixer import OUT_AND_IN, SILENCE
from paretone_app.audio.player import Player
from paretone_app.features.lab.panel import LIBRARY, LabPanel
from paretone_app.features.lab.trial import TimeLine, TrialPage
from paretone_app.listening.abx import AbxSession
from paretone_app.listening.mushra import SHORTEST_LOOP_SECONDS, MushraSession
from paretone_app.listening.preference import PreferenceSession
from paretone_app.listening.staircase import StaircaseSession
from paretone_app.listening.stimuli import PreparedItem, Stimulus
from paretone_app.shell.colours import DARK, LIGHT
from paretone_app.shell.workspaces import recolour
from paretone_app.widgets.action import ActionButton
from tests.app.acting import NamedActs
from tests.app.conftest import in_front, on_screen
from tests.app.listening.test_planning import PLAIN, REDUCED, plan
from tests.engine.listening.listeners import BASELINE, FAST, LOW, MID
from tests.engine.listening.test_results import SCALE, abx_session, staircase_session
from tests.sound import RATE, NullSink

SECONDS = 0.7
LONG = 60.0
"""Of a sound that must not end before a busy machine comes to look at it."""


def prepared(count: int, aligned: bool = True, seconds: float = SECONDS) -> PreparedItem:
    generator = np.random.default_rng(count)
    stimuli = []
    for place, record in enumerate((BASELINE, FAST, LOW, MID)[:count]):
        length = round((seconds if aligned else seconds + 0.1 * place) * RATE)
        stimuli.append(Stimulus(record, (0.1 * generator.standard_normal(length)).astype(np.float32)))
    return PreparedItem(ItemRecord("A sentence.", "anna", 7), tuple(stimuli), RATE, aligned, -23.0, True)


@pytest.fixture
def player(lasting_sink: NullSink) -> Iterator[Player]:
    made = Player()
    made.open()
    assert made.rate == RATE
    yield made
    made.close()


@pytest.fixture
def panel(qtbot: QtBot) -> LabPanel:
    return in_front(LabPanel(LIGHT, NamedActs()), qtbot, 900, 480)


@pytest.fixture
def begin(panel: LabPanel, player: Player) -> Iterator[Callable]:
    def start(session) -> tuple[TrialPage, list[TrialRecord]]:
        answers: list[TrialRecord] = []
        panel.answered.connect(answers.append)
        panel.begin(session, player)
        return panel.trial, answers

    yield start
    panel.end()


def press(*keys: Qt.Key) -> None:
    for key in keys:
        QTest.keyClick(QApplication.focusWidget(), key)


@pytest.mark.slow
def test_abx_by_keys(panel: LabPanel, begin: Callable, player: Player, qtbot: QtBot) -> None:
    session = AbxSession([prepared(2, seconds=LONG)], "l", ABX, 2, random.Random(1))
    page, answers = begin(session)
    assert QApplication.focusWidget() is page and not any(one.isEnabled() for one in page.answer_buttons)
    assert page.answer_buttons[0].toolTip() == "Listen to X first."
    press(Qt.Key.Key_1)
    assert answers == [] and page.hint.text().startswith("Listen to X first.")
    for key, place in ((Qt.Key.Key_A, 0), (Qt.Key.Key_B, 1), (Qt.Key.Key_X, 2)):
        press(key)
        qtbot.waitUntil(lambda place=place: player.playing and player.choice == place)
        assert [one.isChecked() for one in page.buttons] == [place == other for other in range(3)]
    # Behind X is the very sound of A or B, not a copy that could differ.
    loaded = player.mixer.programme.recordings
    assert loaded[2] is loaded[session.trial.order[2]]
    assert player.mixer.programme.gains[2] == player.mixer.programme.gains[session.trial.order[2]]
    press(Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: not player.playing)
    press(Qt.Key.Key_2)
    assert [one.answer for one in answers] == [{"said": 1}] and answers[0].switches == 2
    assert answers[0].around.device and answers[0].around.milliseconds > 0
    assert QApplication.focusWidget() is page, "the next trial has the keyboard"
    # At once, while the pause of the last trial is still on its way to the audio thread.
    press(Qt.Key.Key_X)
    qtbot.waitUntil(lambda: player.playing)
    press(Qt.Key.Key_1)
    assert session.finished or session.void


@pytest.mark.slow
def test_takes_of_other_timing_restart(panel: LabPanel, begin: Callable, player: Player, qtbot: QtBot) -> None:
    page, _ = begin(AbxSession([prepared(2, aligned=False, seconds=LONG)], "l", ABX, 1, random.Random(1)))
    assert "Restart" in page.facts.text()
    press(Qt.Key.Key_A)
    qtbot.waitUntil(lambda: player.position > 0.1)
    press(Qt.Key.Key_B)
    qtbot.waitUntil(lambda: player.choice == 1)
    jump = player.mixer.jumps[-1]
    assert (jump.entering, jump.entering_position) == (1, 0)
    page.follow()
    shown = page.time_line.grab().toImage()
    page.time_line.show_position(0.0)
    assert page.time_line.grab().toImage() == shown
    panel.end()
    page, _ = begin(AbxSession([prepared(2, seconds=LONG)], "l", ABX, 1, random.Random(1)))
    press(Qt.Key.Key_A)
    qtbot.waitUntil(lambda: player.position > 0.1)
    press(Qt.Key.Key_BracketLeft)
    began = player.position
    qtbot.waitUntil(lambda: player.position > began)
    press(Qt.Key.Key_BracketRight)
    qtbot.waitUntil(lambda: player.mixer.state.loop is not None and player.mixer.state.loop[1] < LONG * RATE)
    start, end = player.mixer.state.loop
    assert end - start >= SHORTEST_LOOP_SECONDS * RATE - 1
    press(Qt.Key.Key_L)
    qtbot.waitUntil(lambda: player.mixer.state.loop is None)


@pytest.mark.slow
def test_both_of_a_pair_are_heard_to_the_end(panel: LabPanel, begin: Callable, player: Player, qtbot: QtBot) -> None:
    session = PreferenceSession([prepared(2, seconds=4.0)], "l", CCR, 1, chance=random.Random(1))
    page, answers = begin(session)
    press(Qt.Key.Key_A)
    qtbot.waitUntil(lambda: player.position > 0.2)
    press(Qt.Key.Key_B)  # The first was not heard to its end.
    qtbot.waitUntil(lambda: not player.playing and player.mixer.settled)
    page.follow()
    assert session.heard_whole == {1}
    press(Qt.Key.Key_7)
    assert answers == [] and "Listen to the first to the end first." in page.hint.text()
    press(Qt.Key.Key_A)
    qtbot.waitUntil(lambda: player.playing)
    qtbot.waitUntil(lambda: not player.playing and player.mixer.settled)
    page.follow()
    assert session.heard_whole == {0, 1} and all(one.isEnabled() for one in page.answer_buttons)
    assert all("✓" in one.text() for one in page.buttons)
    press(Qt.Key.Key_7)
    assert answers[0].answer == {"vote": 3} and answers[0].around.mode == "restart"


@pytest.mark.slow
def test_mushra_by_keys(panel: LabPanel, begin: Callable, player: Player, qtbot: QtBot) -> None:
    session = MushraSession([prepared(4, seconds=3.0), prepared(4, seconds=3.0)], "l", MUSHRA, chance=random.Random(1))
    page, answers = begin(session)
    assert "not human speech" in page.question.text()
    assert not any(slider.isEnabled() for slider in page.sliders)
    press(Qt.Key.Key_R)
    for number in (1, 2, 3, 4):
        press(Qt.Key(Qt.Key.Key_0 + number))
        assert [slider.isEnabled() for slider in page.sliders] == [number == other for other in (1, 2, 3, 4)]
        for _ in range(number):
            press(Qt.Key.Key_PageUp)
        press(Qt.Key.Key_Up, Qt.Key.Key_Up, Qt.Key.Key_Down)
    assert [one.text() for one in page.values] == ["11", "21", "31", "41"]
    qtbot.waitUntil(lambda: player.mixer.settled)
    switches = [one for one in player.mixer.jumps if SILENCE not in (one.leaving, one.entering)]
    assert switches and {one.law for one in switches} == {OUT_AND_IN}
    order = session.trial.order
    press(Qt.Key.Key_Return)
    assert len(answers) == 1
    assert [answers[0].answer["ratings"][order[number]] for number in (1, 2, 3, 4)] == [11, 21, 31, 41]
    assert [one.text() for one in page.values] == ["–"] * 4 and QApplication.focusWidget() is page
    press(Qt.Key.Key_2, Qt.Key.Key_PageUp)
    assert [one.text() for one in page.values] == ["–", "10", "–", "–"]
    press(Qt.Key.Key_Return)
    assert len(answers) == 1
    assert "Still to be rated" in page.hint.text() or "Listen to the reference" in page.hint.text()


@pytest.mark.slow
def test_a_staircase_by_keys(panel: LabPanel, begin: Callable, player: Player, qtbot: QtBot) -> None:
    session = StaircaseSession([prepared(4, seconds=LONG)], "l", (0.0, 0.5, 1.0), 2, chance=random.Random(1))
    page, answers = begin(session)
    assert QApplication.focusWidget() is page and page.title.text() == "Staircase · 1 of 2"
    other = 1 if session.trial.order[1] else 2
    assert session.trial.order[other] == 3, "the far end comes first"
    for key, place in ((Qt.Key.Key_R, 0), (Qt.Key.Key_A, 1), (Qt.Key.Key_B, 2)):
        assert not any(one.isEnabled() for one in page.answer_buttons)
        press(key)
        qtbot.waitUntil(lambda place=place: player.playing and player.choice == place)
        assert [one.isChecked() for one in page.buttons] == [place == one for one in range(3)]
    # The reference among the two is the very sound of the labelled one.
    loaded = player.mixer.programme.recordings
    assert loaded[3 - other] is loaded[0] and loaded[other] is not loaded[0]
    press(Qt.Key.Key_1 if other == 1 else Qt.Key.Key_2)
    assert [one.answer for one in answers] == [{"said": other - 1, "scale": [0.0, 0.5, 1.0]}]
    assert session.void or session.valid == 1
    assert not any(word in page.facts.text() for word in ("A +", "A −", "B +", "B −")), "gains could tell them apart"


@pytest.mark.slow
def test_twelve_sounds_are_reached_by_keys(panel: LabPanel, begin: Callable) -> None:
    four = prepared(4, seconds=1.0)
    record = four.stimuli[1].record
    more = tuple(replace(four.stimuli[1], record=replace(record, key=f"{one:016x}")) for one in range(8))
    session = MushraSession([replace(four, stimuli=(*four.stimuli, *more))], "l", MUSHRA, chance=random.Random(1))
    page, _ = begin(session)
    assert len(page.sliders) == 12
    for keys, sounding in (((Qt.Key.Key_0,), 10), ((Qt.Key.Key_Right,) * 2, 12), ((Qt.Key.Key_Right,), 0)):
        for key in keys:
            press(key)
        assert session.sounding == sounding, "round to the reference"
    press(Qt.Key.Key_Left, Qt.Key.Key_PageUp)
    assert session.sounding == 12 and page.values[11].text() == "10"


@pytest.mark.slow
def test_practice_teaches_and_is_not_kept(panel: LabPanel, begin: Callable) -> None:
    session = AbxSession([prepared(2)], "l", ABX, 1, random.Random(1), practice=2)
    page, answers = begin(session)
    assert page.title.text() == "ABX · practice 1 of 2" and "it is not recorded" in page.taught.text()
    x = session.trial.order[2]
    press(Qt.Key.Key_X, (Qt.Key.Key_1, Qt.Key.Key_2)[x])
    assert f"X was {'AB'[x]}: right." in page.taught.text()
    press(Qt.Key.Key_X, Qt.Key.Key_1)
    assert "trials count from now on" in page.taught.text() and page.title.text() == "ABX · 1 of 1"
    assert answers == []
    left = []
    panel.can["abandon"].triggered.connect(lambda: left.append(True))
    page.leave_button.setFocus()
    press(Qt.Key.Key_Space)
    assert left == [] and "not scored" in page.leave_button.text()
    press(Qt.Key.Key_Space)
    assert left == [True]
    page.setFocus()
    press(Qt.Key.Key_X, Qt.Key.Key_1)
    assert [one.number for one in answers] == [1]


@pytest.mark.slow
def test_the_volume_is_set_by_keys(panel: LabPanel, player: Player, lasting_sink: NullSink, qtbot: QtBot) -> None:
    begun = []
    panel.set_volume(-23.0, player, lambda: begun.append(True))
    page = panel.volume
    assert QApplication.focusWidget() is page
    with lasting_sink.recording() as recording:
        press(Qt.Key.Key_N)
        qtbot.waitUntil(lambda: player.playing and player.choice == 0)
        qtbot.waitUntil(lambda: np.count_nonzero(recording.samples) > 1.5 * RATE)
    # Without the gaps that a starved machine leaves, and without the fade at the beginning.
    heard = recording.samples
    heard = heard[heard != 0][int(0.1 * RATE) :]
    assert integrated_loudness(heard, RATE).lufs == pytest.approx(-23.0, abs=1.0)
    press(Qt.Key.Key_T)
    qtbot.waitUntil(lambda: player.choice == 1)
    assert [one.isChecked() for one in page.buttons] == [False, True]
    press(Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: not player.playing)
    press(Qt.Key.Key_Return)
    assert begun == [True]
    panel.end()
    assert panel.volume is None


@pytest.mark.slow
def test_a_device_that_goes_away_voids_the_trial(panel: LabPanel, null_sink: NullSink, qtbot: QtBot) -> None:
    session, player, answers = AbxSession([prepared(2, seconds=LONG)], "l", ABX, 1, random.Random(1)), Player(), []
    player.open()
    panel.answered.connect(answers.append)
    panel.begin(session, player)
    press(Qt.Key.Key_X)
    qtbot.waitUntil(lambda: player.playing)
    null_sink.kill()
    qtbot.waitUntil(lambda: bool(player.problem))
    panel.trial.follow()
    assert panel.device_problem.isVisible()
    press(Qt.Key.Key_1)
    assert answers[0].void and not session.finished and "1 void, repeated" in panel.trial.title.text()
    with qtbot.waitSignal(panel.can["reconnect"].triggered):
        panel.device_problem.findChild(ActionButton).click()
    panel.end()
    player.close()


@pytest.mark.slow
def test_nothing_on_the_page_tells_x_apart(panel: LabPanel, begin: Callable) -> None:
    pictures = []
    for x in (0, 1):
        session = AbxSession([prepared(2)], "l", ABX, 1, random.Random(1))
        session.waiting[0] = replace(session.waiting[0], order=(0, 1, x))
        begin(session)
        press(Qt.Key.Key_X)
        panel.trial.shut_down()
        panel.trial.time_line.show_position(0.0)
        pictures.append(panel.trial.grab().toImage())
        panel.end()
    assert pictures[0] == pictures[1]


def test_the_setup_says_what_the_test_will_be_and_keeps_ticks_and_listeners(panel: LabPanel, qtbot: QtBot) -> None:
    setup = panel.setup
    setup.show_plan(plan("abx", PLAIN, REDUCED), "", "", "")
    assert setup.plan.text().splitlines()[0].startswith("A: baseline")
    assert "12 sentences in common" in setup.plan.text() and "12 of 16" in setup.remarks.text()
    assert setup.begin_button.isEnabled()
    setup.show_plan(plan("abx", PLAIN), "Tick two.", "Tick two.", "")
    assert setup.plan.text() == "" and setup.remarks.text() == "Tick two."
    assert not setup.begin_button.isEnabled() and setup.begin_button.toolTip() == "Tick two."
    assert not setup.ticks.isVisible()
    setup.source.setCurrentIndex(setup.source.findData(LIBRARY))
    assert setup.ticks.isVisible()
    made = plan("abx", PLAIN, REDUCED)
    setup.show_conditions(made.conditions[:1])
    with qtbot.waitSignal(setup.choice_changed):
        setup.ticks.item(0).setCheckState(Qt.CheckState.Checked)
    setup.show_conditions(made.conditions)
    assert setup.choice.ticked == (made.conditions[0].key,)
    setup.show_listeners(("one", "two"))
    assert setup.listener.itemData(1) == "two", "the latest first"
    setup.choose_listener("one")
    setup.show_listeners(("one", "two", "three"))
    assert setup.choice.listener == "one"
    setup.method.setCurrentIndex(3)
    assert (setup.choice.method, setup.choice.length) == ("mushra", 8)


def test_results_are_words_and_a_table(panel: LabPanel) -> None:
    shown = panel.results
    shown.show_results(())
    assert shown.pages.is_empty and "No listening test" in shown.pages.invitation.text()
    assert panel.can["write_results"].reason == "No listening test has been completed yet."
    shown.show_results([("abx", results.result(abx_session("s", 9)))], ("One file is damaged.",))
    text = shown.page.toPlainText()
    assert "No difference was shown: 9 of 16 right" in text and "One file is damaged." in text
    recolour(panel, DARK)
    assert DARK.warning in shown.page.toHtml()
    shown.show_results([("staircase", results.result(staircase_session(SCALE, heard_from=1.0)))])
    text = shown.page.toPlainText()
    assert "A difference is heard every second time from" in text and "Listener" not in text
    table = text[text.index("Setting") :]
    assert "place 9" in table and "4.00×" in table


def test_the_line_seeks_by_a_click_and_loops_by_a_drag(qtbot: QtBot) -> None:
    line = on_screen(TimeLine(LIGHT), qtbot, 202, 30)
    line.show_sound(4.0)
    sought, drawn = [], []
    line.sought.connect(sought.append)
    line.region_drawn.connect(lambda start, end: drawn.append((start, end)))
    middle = line.rect().center()
    QTest.mouseClick(line, Qt.MouseButton.LeftButton, pos=middle)
    assert sought == [pytest.approx(2.0, abs=0.05)]
    QTest.mousePress(line, Qt.MouseButton.LeftButton, pos=middle)
    QTest.mouseMove(line, middle - middle / 2)
    QTest.mouseRelease(line, Qt.MouseButton.LeftButton, pos=middle - middle / 2)
    assert drawn == [pytest.approx((1.0, 2.0), abs=0.05)]
