"""The Listen panel as people use it, with the player below it."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton

from paretone.audio.spectrogram import HOP
from paretone_app.audio.player import Mode
from paretone_app.audio.sound import Sound
from paretone_app.features.listen.plots import Picture, difference, outline
from tests.app.features.player.host import RATE, Host, named, press, set_takes, take, text


def test_the_loop_by_mouse_and_a_click_that_seeks(panel: Host, qtbot) -> None:
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


def test_the_plots_share_their_time_axis(panel: Host, qtbot) -> None:
    press(panel, "+")
    names = [f"{kind} of {what}" for kind in ("Waveform", "Mel spectrogram") for what in ("take A", "take B")]
    names += ["Waveform of the difference A minus B", "Mel spectrogram of the difference A minus B"]

    def ranges() -> set[tuple[float, float]]:
        return {tuple(np.round(named(panel, name).view.viewRange()[0], 6)) for name in names}

    qtbot.waitUntil(lambda: len(ranges()) == 1)
    assert next(iter(ranges()))[1] < panel.plots.duration
    heights = {tuple(named(panel, name).view.viewRange()[1]) for name in names if name.startswith("Waveform")}
    assert len(heights) == 1
    press(panel, "0")
    assert panel.plots.seen == pytest.approx((0, panel.plots.duration))


def test_loudness_is_matched_and_shown(panel: Host) -> None:
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


def test_the_mode_is_shown_with_its_reason(panel: Host, speech: np.ndarray, qtbot) -> None:
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


def test_a_take_is_drawn_while_it_is_made(empty: Host, speech: np.ndarray, qtbot) -> None:
    host, plots = empty, empty.plots
    set_takes(host, qtbot, take(speech, "baseline"), None)
    pieces = np.array_split(speech, 4)
    host.begin_take("B")
    assert "background" in plots.titles[1].styleSheet() and plots.heard == 1, "the letter that is heard is lit"
    for number, piece in enumerate(pieces, start=1):
        host.add_to_take(piece)
        drawn, known = plots.pictures[1], plots.pictures[0]
        np.testing.assert_array_equal(drawn.samples, np.concatenate(pieces[:number]))
        assert abs(len(drawn.mel) * HOP / RATE - drawn.seconds) < 2 * HOP / RATE
        assert known is not None and len(known.samples) == len(speech), "A stays"
        assert plots.notes[1].textItem.toPlainText() == ""
    assert plots.notes[2].textItem.toPlainText() == "Take B is being made."
    host.deck.end_stream()
    host.listen.end_take(True)
    set_takes(host, qtbot, take(speech, "baseline"), take(speech, "accelerated"))
    assert len(plots.pictures[1].mel) == len(plots.pictures[0].mel)
    assert plots.notes[2].textItem.toPlainText() == ""


def test_a_sound_that_is_not_seen_here_has_no_playhead_here(panel: Host, speech: np.ndarray) -> None:
    host, line = panel, panel.plots.plots[0].playhead
    host.deck.seek(1.0)
    assert line.isVisible() and line.value() == pytest.approx(1.0, abs=0.001)
    host.deck.hear_sound(Sound(speech[:RATE], RATE, "Study · point 7", key="another"))
    assert not line.isVisible() and host.plots.heard is None
    host.deck.hear_sound(Sound(speech[:RATE], RATE, "A part of B", part_of=("B", 1.5)))
    host.deck.seek(0.25)
    assert line.isVisible() and line.value() == pytest.approx(1.75, abs=0.001) and host.plots.heard == 1
    host.plots.sought.emit(0.5)
    assert host.deck.sound is None and host.player.position == pytest.approx(0.5, abs=0.001), "a click means A and B"


def picture(value: float, level: float, samples: int = 1000, frames: int = 5) -> Picture:
    return Picture(np.full(samples, value, np.float32), 24000, np.full((frames, 100), level, np.float32))


def test_the_difference_covers_the_time_that_both_have() -> None:
    result = difference(picture(0.5, 1.0), picture(0.2, 0.25, 900, 4), floor=-8.0)
    np.testing.assert_allclose(result.samples, np.full(900, 0.3), atol=1e-6)
    np.testing.assert_allclose(result.mel, np.full((4, 100), 0.75))


def test_two_silences_do_not_differ() -> None:
    assert not difference(picture(0, -11.0), picture(0, -9.0), floor=-8.0).mel.any()
    np.testing.assert_allclose(difference(picture(0, -2.0), picture(0, -11.0), floor=-8.0).mel, 6.0)


def test_no_sample_is_missed() -> None:
    samples = np.zeros(100_003, np.float32)
    samples[77_777], samples[100_002] = 0.9, -0.8
    times, values = outline(samples, 48000, 0.0, 3.0, 500)
    assert len(times) == len(values) <= 1002
    assert values.max() == np.float32(0.9)
    assert values.min() == np.float32(-0.8)
    assert abs(times[values.argmax()] - 77_777 / 48000) < 0.01
    assert (np.diff(times) >= 0).all()


def test_a_close_look_shows_the_samples() -> None:
    samples = np.arange(1000, dtype=np.float32)
    times, values = outline(samples, 1000, 0.1, 0.2, 500)
    np.testing.assert_array_equal(values, samples[100:201])
    np.testing.assert_allclose(times, np.arange(100, 201) / 1000)
