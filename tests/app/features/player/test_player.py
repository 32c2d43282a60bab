"""The player as people use it: real key presses and clicks on the real bar."""

import itertools

import numpy as np
import pytest
from PySide6 import QtWidgets
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QStandardItem, QStandardItemModel, QTextDocumentFragment
from PySide6.QtTest import QTest

from paretone.checks.faults import Checked, Finding
from paretone_app.audio.mixer import OUT_AND_IN
from paretone_app.audio.sound import Envelope, Sound
from paretone_app.features.player.control import STEP_SECONDS, own_keys
from paretone_app.state.playing import Origin
from tests.app.features.player.host import RATE, Host, named, press, set_takes, take, text
from tests.sound import NullSink


def test_keys_choose_and_switch(panel: Host, qtbot) -> None:
    heard = []
    panel.deck.changed.connect(lambda: heard.append(panel.deck.heard))
    press(panel, "bbaxx")
    assert [side for side, _ in itertools.groupby(heard)] == ["B", "A", "B", "A"]
    press(panel, "b")
    assert panel.deck.heard == "B" and panel.player.choice == 1
    assert named(panel, "Hear take B").isChecked() and not named(panel, "Hear take A").isChecked()
    QTest.mouseClick(named(panel, "Switch between A and B"), Qt.MouseButton.LeftButton)
    assert panel.deck.heard == "A"
    with qtbot.waitSignal(panel.control.announcements.said) as said:
        QTest.mouseClick(named(panel, "Hear take B"), Qt.MouseButton.LeftButton)
    assert panel.player.choice == 1 and said.args == ["Take B · F5 mini · baseline"], "screen readers are told"
    for _ in range(3):
        QTest.keyClick(panel, Qt.Key.Key_Right)
    QTest.keyClick(panel, Qt.Key.Key_Left)
    assert panel.player.position == pytest.approx(2 * STEP_SECONDS, abs=1e-4)
    QTest.keyClick(panel, Qt.Key.Key_Home)
    QTest.keyClick(panel, Qt.Key.Key_Left)
    assert panel.player.position == 0 and text(panel, "Position").startswith("0.00 / ")
    assert panel.deck.gains != (1.0, 1.0)
    press(panel, "m")
    assert panel.deck.gains == (1.0, 1.0), "not matched in loudness"
    set_takes(panel, qtbot, panel.deck.takes["A"], None)
    press(panel, "b")
    assert panel.deck.heard == "A" and not named(panel, "Hear take B").isEnabled()


def test_the_loop_by_keyboard(panel: Host) -> None:
    for seconds, key in ((1.0, "["), (2.0, "]")):
        panel.deck.seek(seconds)
        press(panel, key)
    assert panel.player.mixer.state.loop == pytest.approx((48000, 96000), abs=48)
    press(panel, "l")
    assert panel.player.mixer.state.loop is None
    press(panel, "l")
    assert panel.player.mixer.state.loop == pytest.approx((48000, 96000), abs=48)
    assert named(panel, "Loop").isChecked()


def test_without_a_device_everything_but_sound_works(panel: Host, qtbot, monkeypatch) -> None:
    monkeypatch.setenv("PULSE_SERVER", "unix:/nowhere/at/all")
    monkeypatch.setenv("ALSA_CONFIG_PATH", "/nowhere/at/all")
    with qtbot.waitSignal(panel.playback.problem_changed):
        panel.playback.connect_device()
    qtbot.waitUntil(lambda: named(panel, "Audio device").isVisible())
    assert "everything else works" in text(panel, "Audio device") and not named(panel, "Play").isEnabled()
    press(panel, " ")
    assert not panel.player.playing
    with qtbot.waitSignal(panel.playback.probing_changed):
        press(panel, "n")
    qtbot.waitUntil(lambda: not panel.playback.probing)
    press(panel, "b")
    QTest.keyClick(panel, Qt.Key.Key_Right)
    assert panel.deck.heard == "B" and panel.player.position == pytest.approx(STEP_SECONDS, abs=1e-4)


@pytest.mark.slow
def test_playing_for_real(panel: Host, speech: np.ndarray, qtbot, null_sink: NullSink) -> None:
    panel.playback.connect_device()
    qtbot.waitUntil(lambda: panel.player.usable)
    assert not named(panel, "Audio device").isVisible()
    panel.deck.set_take("A", take(speech.copy(), "pressed before it was ready"))
    press(panel, " ")
    qtbot.waitUntil(lambda: panel.player.position > 0.4)
    assert named(panel, "Pause").isEnabled()
    press(panel, "x")
    qtbot.waitUntil(lambda: panel.player.choice == 1)
    assert panel.player.position > 0.4
    press(panel, " ")
    qtbot.waitUntil(lambda: not panel.player.playing)
    # Another take for the other side does not move what is being heard.
    before = panel.player.mixer.state.position
    set_takes(panel, qtbot, take(speech[::-1].copy(), "new"), panel.deck.takes["B"])
    qtbot.wait(100)
    assert (panel.deck.heard, panel.player.mixer.state.position) == ("B", before)
    # A stream is heard while it comes; the takes come back after it.
    with null_sink.recording() as recording:
        panel.deck.begin_stream(RATE)
        for piece in np.array_split(speech[:RATE], 5):
            panel.deck.append(piece)
        # Before the stream ends, which a busy machine may hear sooner than it has analysed the takes.
        set_takes(panel, qtbot, take(speech[:RATE], "streamed"), take(speech[:RATE], "old"))
        assert text(panel, "Switching mode").startswith("Streaming")
        panel.deck.player.end_stream()
        qtbot.waitUntil(lambda: text(panel, "Switching mode").startswith("In sync"))
        qtbot.waitUntil(lambda: np.count_nonzero(recording.samples) > 40000)
    # Repeated, for so short a take may be over before a busy machine sees it play.
    press(panel, "l ")
    qtbot.waitUntil(lambda: panel.player.playing)
    null_sink.kill()
    qtbot.waitUntil(lambda: named(panel, "Audio device").isVisible())
    assert "is gone" in text(panel, "Audio device")
    null_sink.start()
    retry = next(
        one for one in panel.findChildren(QtWidgets.QAbstractButton) if "Reconnect" in one.text().replace("&", "")
    )
    QTest.mouseClick(retry, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: panel.player.usable)
    qtbot.waitUntil(lambda: not named(panel, "Audio device").isVisible())
    panel.listen.setFocus()
    press(panel, " ")
    qtbot.waitUntil(lambda: panel.player.playing)
    # Another sound takes its place, can be paused and repeated, and stays until A or B is wanted.
    panel.deck.hear_row((Sound(speech[: RATE // 2], RATE, "Study · point 7", key="point"),))
    qtbot.waitUntil(lambda: panel.playing.now.sounding and panel.playing.now.title == "Study · point 7")
    press(panel, " ")
    qtbot.waitUntil(lambda: not panel.playing.now.sounding)
    press(panel, "l ")
    with null_sink.recording() as recording:
        qtbot.waitUntil(lambda: np.count_nonzero(recording.samples) > 40000)
    press(panel, "b")
    qtbot.waitUntil(lambda: panel.playing.now.sounding and panel.playing.now.letter == "B")
    assert panel.deck.sound is None


def test_a_player_that_is_lent_is_left_alone(panel: Host, speech: np.ndarray, qtbot) -> None:
    panel.deck.set_loop((0.5, 1.0))
    moved = []
    panel.playing.moved.connect(moved.append)
    player = panel.deck.lend()
    other = np.zeros(48000, np.float32)
    player.load([(other, 48000)])
    player.set_loop(None)
    player.fade_out_and_in(True)
    panel.deck.switch()
    panel.deck.seek(0.7)
    panel.deck.toggle_play()
    panel.deck.hear_from("B", 0.2)
    panel.deck.set_take("B", take(0.25 * speech, "meanwhile"))
    qtbot.waitUntil(lambda: panel.deck.late is not None)
    panel.playback.follow()
    assert (panel.deck.heard, moved) == ("A", [])
    assert player.mixer.programme.recordings[0].length == 48000, "what was lent is still loaded"
    with qtbot.waitSignal(panel.deck.analysed):
        panel.deck.take_back()
    assert text(panel, "Gains").startswith("A ") and len(player.mixer.programme.recordings) == 2
    assert player.mixer.state.loop == pytest.approx((24000, 48000), abs=2)
    panel.deck.choose("B")
    assert panel.deck.heard == "B"
    panel.deck.lend()
    panel.deck.take_back()
    qtbot.waitUntil(lambda: len(panel.deck.loaded) == 2)
    player.mixer.play()
    panel.deck.switch()
    assert player.mixer.jumps[-1].entering >= 0 and player.mixer.jumps[-1].law != OUT_AND_IN


def test_the_bar_says_what_is_heard_and_from_where(panel: Host, speech: np.ndarray) -> None:
    for key, side in ("aA", "bB"):
        press(panel, key)
        assert f"Take {side} · F5 mini · baseline" in text(panel, "What is heard")
    panel.deck.hear_row((Sound(speech[:RATE], RATE, "Study “f5 <trade-off>” · point 7", "A text", "another"),))
    assert "Study “f5 &lt;trade-off&gt;” · point 7" in text(panel, "What is heard")
    assert not named(panel, "Hear take A").isChecked() and not named(panel, "Hear take B").isChecked()
    assert text(panel, "Position") == "0.00 / 1.00 s"
    panel.deck.hear_row((Sound(speech, RATE, "Take of today", key="accelerated"),))
    assert named(panel, "Hear take B").isChecked(), "it is take B"
    panel.begin_take("A")
    panel.add_to_take(speech[:RATE])
    assert "Take A, streaming" in text(panel, "What is heard") and text(panel, "Position") == "0.00 s"
    assert named(panel, "Hear take A").isChecked()


def test_the_side_that_streamed_is_heard_from_then_on(empty: Host, speech: np.ndarray, qtbot) -> None:
    set_takes(empty, qtbot, take(speech, "baseline"))
    empty.begin_take("B")
    empty.add_to_take(speech[:RATE])
    empty.player.end_stream()
    empty.deck.set_take("B", take(speech[:RATE], "accelerated"))
    empty.player.mixer.play()
    empty.player.mixer.render(np.zeros(2 * empty.player.rate, np.float32))
    empty.playback.follow()  # Perhaps before it is analysed.
    qtbot.waitUntil(lambda: len(empty.deck.loaded) == 2)
    assert (empty.deck.heard, empty.playing.now.letter, empty.player.choice) == ("B", "B", 1)
    press(empty, "x")
    assert empty.playing.now.letter == "A" and named(empty, "Hear take A").isChecked()


def test_what_is_heard_ends_with_an_ellipsis_where_there_is_no_room(panel: Host, speech: np.ndarray, qtbot) -> None:
    title = named(panel, "What is heard")
    long = "A sentence that goes on and on, " * 20
    panel.deck.hear_row((Sound(speech[:RATE], RATE, "Study · point 7", long, "another"),))
    shown = QTextDocumentFragment.fromHtml(title.text()).toPlainText()
    assert shown.startswith("Study · point 7") and shown.endswith("…")
    assert title.fontMetrics().horizontalAdvance(shown) <= title.width()
    assert long.strip() in title.toolTip() and long.strip() in title.accessibleDescription(), "it is told whole"
    panel.deck.hear_row((Sound(speech[:RATE], RATE, f"Study of {long}", "Its text", "yet another"),))
    shown_title = QTextDocumentFragment.fromHtml(title.text()).toPlainText()
    assert shown_title.startswith("Study of A sentence") and shown_title.rstrip().endswith("…")
    assert "Its text" in title.accessibleDescription()
    panel.deck.hear_row((Sound(speech[:RATE], RATE, "Study · point 7", long, "another"),))
    panel.bar.resize(panel.bar.width() + 150, panel.bar.height())
    qtbot.waitUntil(lambda: len(QTextDocumentFragment.fromHtml(title.text()).toPlainText()) > len(shown))


def test_a_sound_stays_until_something_else_is_wanted(panel: Host, speech: np.ndarray) -> None:
    deck, sound = panel.deck, Sound(speech[:RATE], RATE, "Study · point 7", key="point")
    deck.hear_row((sound,))
    deck.seek(0.5)
    press(panel, "]")
    assert deck.loop == pytest.approx((0.0, 0.5), abs=0.001)
    press(panel, "ls")
    deck.seek(3.0)
    assert panel.player.position == pytest.approx(1.0, abs=0.001), "not beyond its end"
    panel.playback.follow()
    assert deck.sound is sound and panel.playing.now.origin is Origin.SOUND
    press(panel, "x")
    assert deck.sound is None and (deck.heard, panel.playing.now.letter) == ("A", "A")
    deck.hear_row((sound,))
    press(panel, "b")
    assert (deck.sound, deck.heard, len(panel.player.mixer.programme.recordings)) == (None, "B", 2)


def test_waits_are_those_of_the_last_stream(empty: Host, speech: np.ndarray) -> None:
    deck = empty.deck
    for number in (1, 2):
        deck.begin_stream(RATE)
        deck.player.mixer.play()
        for piece in (speech[:2400], speech[2400:4800]):
            deck.append(piece)
            deck.player.mixer.render(np.zeros(deck.player.rate // 4, np.float32))
        deck.player.end_stream()
        assert deck.player.starvations == 2 * number and deck.waits == (2, pytest.approx(0.3, abs=0.04))
    deck.expect_stream()
    assert deck.waits == (0, 0.0), "of the one that is awaited, nothing was heard yet"


def test_the_waveform_grows_with_a_stream_and_takes_clicks_and_drags(empty: Host, speech: np.ndarray, qtbot) -> None:
    strip = empty.bar.strip
    nothing = strip.grab().toImage()
    empty.begin_take("A")
    seen = []
    for piece in np.array_split(speech[: 2 * RATE], 3):
        empty.add_to_take(piece)
        seen.append(strip.grab().toImage())
    assert len({image.cacheKey() for image in seen}) == 3
    assert all(one != other for one, other in itertools.pairwise([nothing, *seen]))
    assert strip.maximum() == 200 and strip.room == 2.0
    middle = QPoint(strip.width() // 2, strip.height() // 2)
    QTest.mouseClick(strip, Qt.MouseButton.LeftButton, pos=middle)
    assert empty.player.position == pytest.approx(1.0, abs=0.02)
    QTest.mousePress(strip, Qt.MouseButton.LeftButton, pos=middle)
    QTest.mouseMove(strip, QPoint(strip.width() * 3 // 4, 3))
    QTest.mouseRelease(strip, Qt.MouseButton.LeftButton, pos=QPoint(strip.width() * 3 // 4, 3))
    assert empty.deck.loop == pytest.approx((1.0, 1.5), abs=0.02)
    strip.setValue(30)  # As screen readers do.
    assert empty.player.position == pytest.approx(1.0, abs=0.02), "within the loop"


def test_the_waveform_is_computed_once_while_the_playhead_moves(panel: Host, qtbot, monkeypatch) -> None:
    strip, computed, columns = panel.bar.strip, [], Envelope.columns
    monkeypatch.setattr(Envelope, "columns", lambda *given: computed.append(1) or columns(*given))
    strip.resize(strip.width() - 1, strip.height())
    pictures = []
    for number in range(5):
        strip.set_position(0.2 * number)
        pictures.append(strip.grab().toImage())
    assert len(computed) == 1 and all(one != other for one, other in itertools.pairwise(pictures))


def test_faults_are_marked_said_and_reached_by_a_key(panel: Host, qtbot) -> None:
    strip = panel.bar.strip
    plain, sought = strip.grab().toImage(), []
    strip.sought.connect(sought.append)
    gap, missing = ("gap", 0.5, 0.52, 0.9, "No sound for 20 ms."), ("missing", 1.0, 1.4, 0.8, "“seven” is missing.")
    strip.set_faults(Checked((Finding(*gap), Finding(*missing)), ("Clicks were not checked.",)))
    assert strip.grab().toImage() != plain and "2 faults: 0.50 s: Gap." in strip.accessibleDescription()
    for said in ("1.00 s: Words missing. “seven” is missing.", "Use more steps", "Clicks were not checked."):
        assert said in strip.toolTip() and said in strip.accessibleDescription()
    for seconds in (0.6, 1.2):
        strip.set_position(seconds)
        QTest.keyClick(strip, Qt.Key.Key_F)
    assert sought == [1.0, 0.5], "after the last one the first"
    strip.set_faults(Checked())
    assert strip.accessibleDescription() == "" and "fault" not in strip.toolTip()


def test_of_a_listening_test_nothing_is_shown_or_said(panel: Host, speech: np.ndarray, qtbot) -> None:
    said: list[str] = []
    panel.control.announcements.said.connect(said.append)
    player = panel.deck.lend()
    shown = []
    for seconds in (1.0, 2.5):
        player.load([(speech[: round(seconds * RATE)], RATE), (0.5 * speech, RATE)])
        player.seek(0.5 * seconds)
        player.choose(1)
        panel.playback.follow()
        qtbot.wait(100)
        press(panel, "ab x[]")
        assert player.choice == 1, "the keys belong to the test"
        shown.append(panel.bar.grab().toImage())
        told = ""
        for one in panel.bar.findChildren(QtWidgets.QWidget):
            if one.isVisibleTo(panel.bar):
                told += f"{one.accessibleName()} {one.accessibleDescription()} {one.toolTip()} "
                told += str(getattr(one, "text", str)())
        assert "Take" not in told and "mini" not in told and "0.5" not in told
    assert shown[0] == shown[1]
    assert panel.playing.now.title == panel.playing.now.letter == panel.playing.now.key == ""
    assert panel.playing.now.origin is Origin.TEST and panel.playing.now.seconds == 0.0
    panel.deck.take_back()
    assert said == []


def pressed(host: Host, widget: QtWidgets.QWidget, keys: str) -> None:
    host.layout().addWidget(widget)
    widget.show()
    widget.setFocus()
    press(host, keys)


@pytest.mark.parametrize("kind", [QtWidgets.QLineEdit, QtWidgets.QPlainTextEdit])
def test_text_is_typed_and_nothing_plays(panel: Host, kind: type[QtWidgets.QWidget]) -> None:
    widget = kind()
    pressed(panel, widget, "a bxls[]")
    QTest.keyClick(widget, Qt.Key.Key_Left)
    typed = widget.text() if isinstance(widget, QtWidgets.QLineEdit) else widget.toPlainText()
    assert typed == "a bxls[]"
    assert (panel.deck.heard, panel.deck.loop, panel.player.position) == ("A", None, 0.0)


def test_buttons_tables_choices_and_numbers_keep_their_own_keys(panel: Host, qtbot) -> None:
    box = QtWidgets.QCheckBox("Here")
    pressed(panel, box, " b")
    QTest.keyClick(box, Qt.Key.Key_Right)
    assert box.isChecked() and panel.deck.heard == "B"
    assert panel.player.position == pytest.approx(STEP_SECONDS, abs=1e-4)
    model = QStandardItemModel()
    for word in ("one", "two", "xylophone"):
        model.appendRow(QStandardItem(word))
    table, done = QtWidgets.QTableView(), []
    table.setModel(model)
    table.setEditTriggers(QtWidgets.QTableView.EditTrigger.NoEditTriggers)
    action = QAction("Set A", table, shortcut="A", shortcutContext=Qt.ShortcutContext.WidgetShortcut)
    action.triggered.connect(lambda: done.append("A"))
    table.addAction(action)
    pressed(panel, table, "ax")
    assert done == ["A"] and panel.deck.heard == "B" and table.currentIndex().row() == 2
    press(panel, "[")
    assert panel.deck.loop is not None, "which a table does not use"
    for one in (QtWidgets.QComboBox(), QtWidgets.QSpinBox()):
        qtbot.addWidget(one)
        assert {"A", "Space", "Left", "Home"} <= own_keys(one)
    group = QtWidgets.QGroupBox("Technique", checkable=True)
    qtbot.addWidget(group)
    assert own_keys(group) == {"Space"} and not own_keys(QtWidgets.QWidget()) and not own_keys(None)
