"""The Listen panel as people use it: real key presses and clicks on the real widget."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
import soundfile
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from app.audio.player import Player
from app.audio.switching import Mode
from app.features.listen.panel import STEP_SECONDS, ListenPanel
from app.shell.theme import DARK, LIGHT
from engine.audio.spectrogram import HOP
from engine.models.catalogue import voice
from engine.setting.setting import Setting
from engine.setting.take import Take
from tests.sound import NullSink, null_sink  # noqa: F401

RATE = 24000


def take(samples: np.ndarray, label: str) -> Take:
    return Take(label, "2026-01-01T00:00:00Z", "Text", "voice", Setting("f5-mini"), RATE, samples, label=label)


@pytest.fixture(scope="module")
def speech() -> np.ndarray:
    samples, rate = soundfile.read(voice().audio, dtype="float32")
    assert rate == RATE
    return samples


@pytest.fixture
def empty(qtbot) -> Iterator[ListenPanel]:
    panel = ListenPanel(Player(), LIGHT)
    qtbot.addWidget(panel)
    panel.resize(900, 600)
    panel.show()
    panel.activateWindow()
    qtbot.waitUntil(panel.isActiveWindow)
    panel.setFocus()
    yield panel
    panel.shut_down()


@pytest.fixture
def panel(empty: ListenPanel, speech: np.ndarray, qtbot) -> ListenPanel:
    set_takes(empty, qtbot, take(speech, "baseline"), take(0.5 * speech, "accelerated"))
    return empty


def set_takes(panel: ListenPanel, qtbot, take_a: Take | None, take_b: Take | None) -> None:
    with qtbot.waitSignal(panel.deck.analysed):
        panel.deck.set_take("A", take_a)
        panel.deck.set_take("B", take_b)


def press(panel: QWidget, keys: str) -> None:
    for key in keys:
        QTest.keyClick(QApplication.focusWidget() or panel, key)


def named(panel: QWidget, name: str) -> QWidget:
    return next(one for one in panel.findChildren(QWidget) if one.accessibleName() == name)


def text(panel: QWidget, name: str) -> str:
    return named(panel, name).text()


def test_keys_choose_and_switch(panel: ListenPanel, qtbot) -> None:
    heard = []
    panel.deck.changed.connect(lambda: heard.append(panel.deck.heard))
    press(panel, "b")
    press(panel, "b")
    press(panel, "a")
    press(panel, "x")
    press(panel, "x")
    assert [side for side, _ in itertools.groupby(heard)] == ["B", "A", "B", "A"]
    press(panel, "b")
    assert panel.deck.heard == "B"
    assert panel.player.choice == 1
    assert named(panel, "Hear take B").isChecked()
    assert not named(panel, "Hear take A").isChecked()


def test_buttons_do_what_keys_do(panel: ListenPanel) -> None:
    QTest.mouseClick(named(panel, "Hear take B"), Qt.MouseButton.LeftButton)
    assert panel.player.choice == 1
    QTest.mouseClick(named(panel, "Switch between A and B"), Qt.MouseButton.LeftButton)
    assert panel.deck.heard == "A"


def test_an_empty_side_cannot_be_heard(empty: ListenPanel, speech: np.ndarray, qtbot) -> None:
    set_takes(empty, qtbot, take(speech, "only"), None)
    press(empty, "b")
    assert empty.deck.heard == "A"
    assert named(empty, "Hear take A").isChecked()
    assert not named(empty, "Hear take B").isEnabled()
    set_takes(empty, qtbot, None, take(speech, "only"))
    assert empty.deck.heard == "B"


def test_a_choice_made_during_the_analysis_holds(empty: ListenPanel, speech: np.ndarray, qtbot) -> None:
    with qtbot.waitSignal(empty.deck.analysed):
        empty.deck.set_take("A", take(speech, "a"))
        empty.deck.set_take("B", take(speech, "b"))
        press(empty, "b")
        assert empty.deck.heard == "B"
    assert (empty.deck.heard, empty.player.choice) == ("B", 1)


def test_arrows_seek_and_home_returns(panel: ListenPanel) -> None:
    for _ in range(3):
        QTest.keyClick(panel, Qt.Key.Key_Right)
    assert panel.player.position == pytest.approx(3 * STEP_SECONDS, abs=1e-4)
    QTest.keyClick(panel, Qt.Key.Key_Left)
    assert panel.player.position == pytest.approx(2 * STEP_SECONDS, abs=1e-4)
    QTest.keyClick(panel, Qt.Key.Key_Home)
    QTest.keyClick(panel, Qt.Key.Key_Left)
    assert panel.player.position == 0
    assert text(panel, "Position").startswith("0.00 / ")


def test_the_loop_by_keyboard(panel: ListenPanel) -> None:
    panel.deck.seek(1.0)
    press(panel, "[")
    panel.deck.seek(2.0)
    press(panel, "]")
    assert panel.player.mixer.state.loop == pytest.approx((48000, 96000), abs=48)
    press(panel, "l")
    assert panel.player.mixer.state.loop is None
    press(panel, "l")
    assert panel.player.mixer.state.loop == pytest.approx((48000, 96000), abs=48)
    assert named(panel, "Loop").isChecked()


def test_the_loop_by_mouse_and_a_click_that_seeks(panel: ListenPanel, qtbot) -> None:
    plot = named(panel, "Waveform of take A")
    across = plot.view.sceneBoundingRect()

    def at(seconds: float) -> QPoint:
        duration = panel.plots.seen[1]
        scene = across.left() + across.width() * seconds / duration
        return plot.mapFromScene(scene, across.center().y())

    view = plot.viewport()
    QTest.mousePress(view, Qt.MouseButton.LeftButton, pos=at(0.5))
    for seconds in (0.7, 1.0, 1.5):
        QTest.mouseMove(view, at(seconds))
        qtbot.wait(20)
    QTest.mouseRelease(view, Qt.MouseButton.LeftButton, pos=at(1.5))
    assert panel.player.mixer.state.loop is not None
    start, end = (one / panel.player.rate for one in panel.player.mixer.state.loop)
    assert (start, end) == pytest.approx((0.5, 1.5), abs=0.02)
    press(panel, "l")
    QTest.mouseClick(view, Qt.MouseButton.LeftButton, pos=at(2.2))
    qtbot.waitUntil(lambda: panel.player.position == pytest.approx(2.2, abs=0.02))


def test_the_plots_share_their_time_axis(panel: ListenPanel, qtbot) -> None:
    press(panel, "+")
    names = [f"{kind} of {what}" for kind in ("Waveform", "Mel spectrogram") for what in ("take A", "take B")]
    names += ["Waveform of the difference A minus B", "Mel spectrogram of the difference A minus B"]

    def ranges() -> set[tuple[float, float]]:
        return {tuple(np.round(named(panel, name).view.viewRange()[0], 6)) for name in names}

    qtbot.waitUntil(lambda: len(ranges()) == 1)
    assert next(iter(ranges()))[1] < panel.plots._duration
    heights = {tuple(named(panel, name).view.viewRange()[1]) for name in names if name.startswith("Waveform")}
    assert len(heights) == 1
    press(panel, "0")
    assert panel.plots.seen == pytest.approx((0, panel.plots._duration))


def test_loudness_is_matched_and_shown(panel: ListenPanel) -> None:
    assert text(panel, "Gains") == "A −6.0 dB   B 0.0 dB"
    assert panel.player.mixer._programme.gains == pytest.approx((0.5, 1.0), abs=1e-3)
    level = named(panel, "Mel spectrogram of the difference A minus B").image.image
    assert np.abs(level).max() < 0.01
    match = next(one for one in panel.findChildren(QAbstractButton) if "loudness" in one.text())
    match.setFocus()
    QTest.keyClick(match, Qt.Key.Key_Space)
    assert not match.isChecked()
    assert text(panel, "Gains") == "A 0.0 dB   B 0.0 dB"
    assert panel.player.mixer._programme.gains == (1.0, 1.0)
    assert np.median(named(panel, "Mel spectrogram of the difference A minus B").image.image) == pytest.approx(
        6.02, abs=1
    )


def test_the_mode_is_shown_with_its_reason(panel: ListenPanel, speech: np.ndarray, qtbot) -> None:
    assert text(panel, "Switching mode").startswith("In sync: ")
    set_takes(panel, qtbot, take(speech, "a"), take(speech[: -RATE // 2], "b"))
    assert text(panel, "Switching mode") == (
        "Restart: The takes differ by 0.50 s in length, so a switch starts from the beginning."
    )
    assert panel.player.comparison.mode is Mode.RESTART
    assert named(panel, "Mel spectrogram of the difference A minus B").image.image is None
    with qtbot.waitSignal(panel.deck.analysed):
        panel.deck.set_aligned(False)
    assert "differs between takes" in text(panel, "Switching mode")


def test_texts_are_shown_and_hidden(panel: ListenPanel) -> None:
    assert not named(panel, "Warning").isVisible()
    panel.set_warning("A and B have different seeds.")
    panel.set_difference("δ: 0.2 → 0.3")
    assert named(panel, "Warning").isVisible()
    assert text(panel, "What differs") == "δ: 0.2 → 0.3"
    panel.set_warning("")
    panel.set_difference("")
    assert not named(panel, "Warning").isVisible()
    assert not named(panel, "What differs").isVisible()


def test_without_a_device_everything_but_sound_works(panel: ListenPanel, qtbot, monkeypatch) -> None:
    monkeypatch.setenv("PULSE_SERVER", "unix:/nowhere/at/all")
    monkeypatch.setenv("ALSA_CONFIG_PATH", "/nowhere/at/all")
    with qtbot.waitSignal(panel.problem_changed):
        panel.connect_device()
    qtbot.waitUntil(lambda: named(panel, "Audio device").isVisible())
    assert "everything else works" in text(panel, "Audio device")
    assert not named(panel, "Play").isEnabled()
    press(panel, " ")
    assert not panel.player.playing
    press(panel, "b")
    QTest.keyClick(panel, Qt.Key.Key_Right)
    assert panel.deck.heard == "B"
    assert panel.player.position == pytest.approx(STEP_SECONDS, abs=1e-4)


def test_everything_that_takes_the_focus_or_shows_data_has_a_name(panel: ListenPanel) -> None:
    nameless = [
        one
        for one in panel.findChildren(QWidget)
        if one.focusPolicy() & Qt.FocusPolicy.TabFocus
        and not one.accessibleName()
        and not (isinstance(one, QAbstractButton) and one.text())
        and not one.objectName().startswith("qt_")
    ]
    assert not nameless


def test_the_theme_can_change(panel: ListenPanel, qtbot) -> None:
    def settled() -> QImage:
        """The picture once painting changes nothing any more: axes take the room that their figures need."""
        qtbot.waitUntil(lambda: panel.grab().toImage() == panel.grab().toImage())
        return panel.grab().toImage()

    light = settled()
    panel.set_colours(DARK)
    dark = panel.plots.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    panel.set_colours(LIGHT)
    again = settled()
    middle = dark.pixelColor(dark.width() // 2, 3)
    assert middle.lightness() < 60
    assert light == again


@pytest.mark.slow
def test_playing_for_real(panel: ListenPanel, speech: np.ndarray, qtbot, null_sink: NullSink) -> None:  # noqa: F811
    panel.connect_device()
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
        panel.deck.end_stream()
        qtbot.waitUntil(lambda: text(panel, "Switching mode").startswith("In sync"))
        qtbot.waitUntil(lambda: np.count_nonzero(recording.samples) > 40000)

    # Repeated, for so short a take may be over before a busy machine sees it play.
    press(panel, "l ")
    qtbot.waitUntil(lambda: panel.player.playing)
    null_sink.kill()
    qtbot.waitUntil(lambda: named(panel, "Audio device").isVisible())
    assert "is gone" in text(panel, "Audio device")
    null_sink.start()
    retry = next(one for one in panel.findChildren(QAbstractButton) if "Reconnect" in one.text().replace("&", ""))
    QTest.mouseClick(retry, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: panel.player.usable)
    qtbot.waitUntil(lambda: not named(panel, "Audio device").isVisible())
    panel.setFocus()
    press(panel, " ")
    qtbot.waitUntil(lambda: panel.player.playing)


def test_a_panel_whose_player_is_lent_leaves_it_alone(panel: ListenPanel, speech: np.ndarray, qtbot) -> None:
    panel.deck.set_loop((0.5, 1.0))
    moved = []
    panel.position_changed.connect(moved.append)
    player = panel.deck.lend()
    other = np.zeros(48000, np.float32)
    player.load([(other, 48000)])
    player.clear_loop()
    player.fade_out_and_in(True)
    panel.deck.switch()
    panel.deck.seek(0.7)
    panel.deck.toggle_play()
    panel.deck.hear_from("B", 0.2)
    panel.deck.set_take("B", take(0.25 * speech, "meanwhile"))
    qtbot.waitUntil(lambda: panel.deck._late is not None)
    panel._refresh()
    assert (panel.deck.heard, moved) == ("A", [])
    assert player.mixer._programme.recordings[0].length == 48000, "what was lent is still loaded"
    with qtbot.waitSignal(panel.deck.analysed):
        panel.deck.take_back()
    assert text(panel, "Gains").startswith("A ")
    assert len(player.mixer._programme.recordings) == 2
    assert player.mixer.state.loop == pytest.approx((24000, 48000), abs=2)
    panel.deck.choose("B")
    assert panel.deck.heard == "B"
    panel.deck.lend()
    panel.deck.take_back()
    qtbot.waitUntil(lambda: len(panel.deck._loaded) == 2)
    assert not player.mixer._out_and_in


def test_a_take_is_drawn_while_it_is_made(empty: ListenPanel, speech: np.ndarray, qtbot) -> None:
    panel, plots = empty, empty.plots
    set_takes(panel, qtbot, take(speech, "baseline"), None)
    pieces = np.array_split(speech, 4)
    panel.deck.begin_stream(RATE)
    panel.begin_take("B", RATE)
    assert "background" in plots._titles[1].styleSheet() and plots._heard == 1, "the letter that is heard is lit"
    for number, piece in enumerate(pieces, start=1):
        panel.deck.append(piece)
        panel.add_to_take(piece)
        panel._refresh()
        drawn, known = plots._pictures[1], plots._pictures[0]
        np.testing.assert_array_equal(drawn.samples, np.concatenate(pieces[:number]))
        assert abs(len(drawn.mel) * HOP / RATE - drawn.seconds) < 2 * HOP / RATE
        assert known is not None and len(known.samples) == len(speech), "A stays"
        assert plots._notes[1].textItem.toPlainText() == ""
    assert plots._notes[2].textItem.toPlainText() == "Take B is being made."
    panel.deck.end_stream()
    panel.end_take(True)
    set_takes(panel, qtbot, take(speech, "baseline"), take(speech, "accelerated"))
    assert len(plots._pictures[1].mel) == len(plots._pictures[0].mel)
    assert plots._notes[2].textItem.toPlainText() == ""


def test_a_take_that_is_given_up_is_drawn_no_longer(empty: ListenPanel, speech: np.ndarray, qtbot) -> None:
    empty.deck.begin_stream(RATE)
    empty.begin_take("A", RATE)
    empty.add_to_take(speech)
    empty._refresh()
    assert empty.plots._pictures[0] is not None
    empty.end_take(False)
    assert empty.plots._pictures[0] is None
    assert empty.plots._notes[0].textItem.toPlainText() == "Take A will appear here."
