"""The Listen panel as people use it, with the player below it."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QDropEvent, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication

from paretone.checks.faults import Checked, Finding
from paretone.models.catalogue import voice
from paretone.setting.take import Trace
from paretone_app.audio.player import Mode
from paretone_app.audio.sound import Sound
from paretone_app.features.listen.analysis import BANDS, Tile
from paretone_app.features.listen.canvas import TILE, Lane, difference_of, outline
from paretone_app.features.listen.panel import ListenPanel
from paretone_app.features.takes.table import TakesModel
from paretone_app.shell.colours import LIGHT
from paretone_app.widgets.action import Action
from tests.app.conftest import typed
from tests.app.features.player.host import RATE, Host, named, press, set_takes, take, text


def analysed(host: Host, qtbot) -> None:
    qtbot.waitUntil(lambda: not host.listen.finder.busy)


def tiles(host: Host, lane: int) -> list[Tile]:
    canvas = host.canvas
    shown, _, _, heights = list(canvas.shown())[lane]
    return [canvas.tile(shown, number, heights) for number in canvas.numbers()]


@pytest.fixture
def eight(empty: Host, speech: np.ndarray, qtbot) -> Host:
    """Eight takes; the last is of another length."""
    takes = [take((0.9**number * speech).astype(np.float32), f"{number}") for number in range(7)]
    set_takes(empty, qtbot, *takes, take(speech[: -RATE // 2], "7"))
    return empty


def test_the_loop_by_mouse_and_a_click_that_seeks(panel: Host, qtbot) -> None:
    canvas = panel.canvas

    def at(seconds: float) -> QPoint:
        return QPoint(round(canvas.place(seconds)), canvas.height() // 4)

    def drag(start: float, end: float) -> None:
        QTest.mousePress(canvas, Qt.MouseButton.LeftButton, pos=at(start))
        for share in (0.3, 0.6, 1.0):
            QTest.mouseMove(canvas, at(start + share * (end - start)))
        QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=at(end))

    def loop() -> tuple[float, float]:
        return tuple(one / panel.player.rate for one in panel.player.mixer.state.loop)

    drag(0.5, 1.5)
    assert loop() == pytest.approx((0.5, 1.5), abs=0.02)
    drag(1.5, 1.8)
    assert loop() == pytest.approx((0.5, 1.8), abs=0.02), "an end is moved"
    drag(1.0, 1.2)
    assert loop() == pytest.approx((0.7, 2.0), abs=0.02), "the whole part is moved"
    drag(1.8, 0.5)
    assert loop() == pytest.approx((0.0, 1.3), abs=0.02), "as far as there is room, and keeps its length"
    press(panel, "l")
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=at(2.2))
    qtbot.waitUntil(lambda: panel.player.position == pytest.approx(2.2, abs=0.02))


def test_zoom_and_scroll_are_shared_and_reset_by_a_key(panel: Host, qtbot) -> None:
    canvas, duration = panel.canvas, panel.canvas.whole.high
    analysed(panel, qtbot)
    assert panel.listen.bar.isHidden(), "all is in view"
    coarse = tiles(panel, 0)[0]

    def span() -> float:
        return canvas.time.high - canvas.time.low

    for _ in range(3):
        press(panel, "+")
    assert span() == pytest.approx(duration / 1.5**3)
    analysed(panel, qtbot)
    fine = tiles(panel, 0)
    assert all(isinstance(one, Tile) for one in fine)
    assert fine[0].levels.shape == coarse.levels.shape == (TILE, coarse.levels.shape[1]), "a column per pixel"
    assert not np.array_equal(fine[0].levels, coarse.levels), "computed anew"
    QTest.keyClick(panel.listen, Qt.Key.Key_PageDown)
    assert canvas.time.low == pytest.approx(0.8 * span())
    assert panel.listen.bar.value() == round(1000 * canvas.time.low) and panel.listen.bar.isVisible()
    panel.listen.bar.setValue(100)
    assert canvas.time.low == pytest.approx(0.1) and panel.deck.seen == canvas.time.ends
    QTest.keyClick(panel.listen, Qt.Key.Key_PageUp, Qt.KeyboardModifier.ShiftModifier)
    assert canvas.bands.high - canvas.bands.low == pytest.approx(100 / 1.5)
    for _ in range(3):
        QTest.keyClick(panel.listen, Qt.Key.Key_PageDown, Qt.KeyboardModifier.AltModifier)
    assert canvas.bands.ends == pytest.approx((BANDS.low, BANDS.low + 100 / 1.5)), "the lowest ones"
    where = QPointF(canvas.width() / 2, 60)
    for held in (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier):
        before = canvas.time, canvas.bands
        buttons, none = Qt.MouseButton.NoButton, QPoint()
        QApplication.sendEvent(
            canvas, QWheelEvent(where, where, none, QPoint(0, 120), buttons, held, Qt.ScrollPhase.NoScrollPhase, False)
        )
        assert (canvas.time != before[0]) is not (canvas.bands != before[1])
    press(panel, "0")
    assert canvas.time == canvas.whole and canvas.bands == BANDS


def test_loudness_is_matched_and_shown(panel: Host, qtbot) -> None:
    assert text(panel, "Gains") == "A −6.0 dB   B 0.0 dB"
    assert panel.player.mixer.programme.gains == pytest.approx((0.5, 1.0), abs=1e-3)
    analysed(panel, qtbot)
    assert np.abs(tiles(panel, 2)[0].levels).max() < 0.05
    match = next(one for one in panel.findChildren(QAbstractButton) if "loudness" in one.text())
    match.setFocus()
    QTest.keyClick(match, Qt.Key.Key_Space)
    assert not match.isChecked() and text(panel, "Gains") == "A 0.0 dB   B 0.0 dB"
    assert panel.player.mixer.programme.gains == (1.0, 1.0)
    analysed(panel, qtbot)
    assert np.median(tiles(panel, 2)[0].levels) == pytest.approx(6.02, abs=1)


def test_the_mode_is_shown_with_its_reason(panel: Host, speech: np.ndarray, qtbot) -> None:
    assert text(panel, "Switching mode").startswith("In sync: ")
    a, b = take(speech, "a"), take(speech[: -RATE // 2], "b")
    set_takes(panel, qtbot, a, b)
    assert "Restart: The takes differ by 0.50 s" in text(panel, "Switching mode")
    assert panel.player.comparison.mode is Mode.RESTART and len(panel.canvas.lanes) == 2
    assert text(panel, "Why there is no difference") == "Their timing differs."
    with qtbot.waitSignal(panel.deck.analysed):
        panel.deck.set_take("B", b, aligned=False)
    assert "differs between takes" in text(panel, "Switching mode")


def test_a_take_is_drawn_while_it_is_made(empty: Host, speech: np.ndarray, qtbot) -> None:
    host, canvas = empty, empty.canvas
    set_takes(host, qtbot, take(speech, "baseline"), None)
    pieces = np.array_split(speech, 4)
    assert host.listen.empty[1].isVisibleTo(canvas) and not host.listen.empty[0].isVisibleTo(canvas)
    host.begin_take("B")
    assert host.listen.heads[1].badge.isChecked(), "the letter that is heard is lit"
    for number, piece in enumerate(pieces, start=1):
        host.add_to_take(piece)
        np.testing.assert_array_equal(canvas.lanes[1].samples, np.concatenate(pieces[:number]))
        assert len(canvas.lanes[0].samples) == len(speech), "A stays"
        assert not host.listen.empty[1].isVisibleTo(canvas)
    assert text(host, "Why there is no difference") == "Take B is being made."
    host.deck.player.end_stream()
    set_takes(host, qtbot, take(speech, "baseline"), take(speech, "accelerated"))
    assert len(canvas.lanes) == 3 and text(host, "Why there is no difference") == ""


def test_a_sound_that_is_not_seen_here_has_no_playhead_here(panel: Host, speech: np.ndarray) -> None:
    host, canvas = panel, panel.canvas
    host.deck.seek(1.0)
    assert canvas.position == pytest.approx(1.0, abs=0.001)
    host.deck.hear_row((Sound(speech[:RATE], RATE, "Study · point 7", key="another"),))
    assert canvas.position is None and not any(one.badge.isChecked() for one in host.listen.heads)
    host.deck.hear_row((Sound(speech[:RATE], RATE, "A part of B", part_of=("B", 1.5)),))
    host.deck.seek(0.25)
    assert canvas.position == pytest.approx(1.75, abs=0.001) and host.listen.heads[1].badge.isChecked()
    canvas.sought.emit(0.5)
    assert host.deck.sound is None and host.player.position == pytest.approx(0.5, abs=0.001), "a click means the lanes"


def test_eight_lanes_are_switched_by_their_numbers(eight: Host) -> None:
    assert [one.letter for one in eight.listen.heads] == list("AB345678")
    assert text(eight, "Switching mode").startswith("Restart: Takes with the same timing keep")
    eight.deck.seek(1.0)
    for key, heard in zip("35721", "357BA", strict=True):
        press(eight, key)
        assert (eight.deck.heard, eight.player.choice) == (heard, int(key) - 1)
        assert eight.player.position == pytest.approx(1.0, abs=1e-3), "at the same place"
        assert [one.letter for one in eight.listen.heads if one.badge.isChecked()] == [heard]
    press(eight, "8")
    assert (eight.deck.heard, eight.player.position) == ("8", 0.0), "of another length: from its beginning"
    press(eight, "x")
    assert eight.deck.heard == "A", "back to the one before"
    assert len(eight.deck.gains) == 8 and eight.deck.gains[6] > eight.deck.gains[0]
    assert text(eight, "Gains").count("dB") == 2 and "7 " in named(eight, "Gains").toolTip()


def test_scrolling_computes_and_draws_only_what_comes_into_view(eight: Host, qtbot, monkeypatch) -> None:
    canvas, finder = eight.canvas, eight.listen.finder
    canvas.look(canvas.whole.zoomed(0.2, 0.0, canvas.whole))
    analysed(eight, qtbot)
    canvas.grab()
    before, drawn, tile = set(canvas.numbers()), set(), canvas.tile
    monkeypatch.setattr(canvas, "tile", lambda lane, number, heights: drawn.add(number) or tile(lane, number, heights))
    wanted, want = [], finder.want
    monkeypatch.setattr(finder, "want", lambda pieces: wanted.append(1) or want(pieces))
    for _ in range(20):
        canvas.look(canvas.time.moved(0.001, canvas.whole))
        canvas.grab()
    assert not wanted and not drawn & before
    canvas.look(canvas.time.moved(1.0, canvas.whole))
    assert wanted


def test_lanes_are_pinned_subtracted_moved_and_removed_by_keys(eight: Host) -> None:
    done: list[tuple] = []
    compared, heads = eight.compared, eight.listen.heads
    eight.listen.arranged.connect(lambda *one: done.append(one) or compared.arrange(*one[1:]))
    heads[2].setFocus()
    press(eight, "p")
    assert (compared.reference, heads[2].pin.isChecked()) == (2, True)
    assert "from 3: " in heads[0].facts.text().replace("\u00a0", " ")
    heads[3].setFocus()
    press(eight, "d")
    assert (compared.reference, compared.other) == (2, 3) and eight.canvas.lanes[-1].letter == "3 − 4"
    takes = compared.lanes
    QTest.keyClick(heads[3], Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    assert compared.lanes == (*takes[:2], takes[3], takes[2], *takes[4:])
    assert (compared.reference, compared.other) == (3, 2), "they stay with their takes"
    assert QApplication.focusWidget() is heads[2]
    QTest.keyClick(heads[2], Qt.Key.Key_Delete)
    assert compared.lanes == (*takes[:3], *takes[4:]) and compared.reference == 2
    assert [one[0] for one in done][-1] == "remove lane 3"
    heads[0].remove.click()
    assert compared.lanes[0] is takes[1], "the others move up"


def test_a_lane_tells_everything_about_its_take(empty: Host, speech: np.ndarray, qtbot) -> None:
    phones = (("w", 0.1, 0.2), ("i", 0.2, 0.3), ("_", 0.3, 0.32), ("m", 0.32, 0.4), ("i", 0.4, 0.5), ("t", 0.5, 0.6))
    told = replace(take(speech, "told"), text="We meet.", trace=Trace(phones=phones), remark="Harsh s #s")
    heard = replace(take(0.5 * speech, "heard"), text=voice().transcript)
    empty.listen.findings = {"heard": Checked((Finding("gap", 0.5, 0.52, 0.9, "No sound for 20 ms."),))}
    unused = empty.listen.heads[0]
    assert all(one.isHidden() for one in (unused.note, unused.pin, unused.remove, empty.listen.bar))
    set_takes(empty, qtbot, told, heard)
    analysed(empty, qtbot)
    head = empty.listen.heads[1]
    for part in ("LUFS", "dBTP", "1 fault", "RTF", "first audio", "from A: 0.00 s", "pitch 0.0 st"):
        assert part in head.facts.text().replace("\u00a0", " ") and part in head.accessibleDescription()
    assert "0.50 s: No sound for 20 ms." in head.accessibleDescription()
    assert head.accessibleName() == "Lane B: Baseline, seed 0"
    first, second = empty.canvas.lanes[:2]
    assert first.words == (("We", phones[:2]), ("meet", phones[3:]))
    assert [word for word, _ in second.words][:3] == ["We", "will", "meet"], "aligned"
    assert (np.diff([parts[0][1] for _, parts in second.words]) > 0).all()
    assert second.words[-1][1][-1][2] < second.seconds
    pitch = second.facts.pitch
    assert 120 < np.exp(pitch[pitch > 0].mean()) < 300 and second.behind is first.facts.pitch
    empty.resize(1000, 260)
    analysed(empty, qtbot)
    canvas, said = empty.canvas, []
    _, top, height, heights = next(iter(canvas.shown()))
    assert height < 100 and not heights.pitch and not heights.phones, "drawn over the spectrogram, and told"
    with_pitch = canvas.grab().toImage()
    canvas.read_out.connect(said.append)
    QTest.mouseMove(canvas, QPoint(round(canvas.place(0.25)), top + heights.wave + 5))
    assert "“We” i" in said[-1]
    first.facts = replace(first.facts, pitch=0 * pitch)
    canvas.redraw()
    assert canvas.grab().toImage() != with_pitch
    note, noted = empty.listen.heads[0].note, []
    assert note.text() == "Harsh s #s"
    empty.listen.noted.connect(lambda *one: noted.append(one))
    empty.listen.heads[0].setFocus()
    press(empty, "t")
    typed(note, "Better #good", qtbot)
    assert noted == [("told", "Better #good")]


def test_nothing_is_analysed_while_a_take_is_timed(empty: Host, speech: np.ndarray, qtbot) -> None:
    finder = empty.listen.finder
    finder.hold(True)
    set_takes(empty, qtbot, take(speech, "a"), take(speech, "b"))
    qtbot.wait(200)
    assert finder.busy and empty.canvas.lanes[0].facts is None
    assert empty.canvas.grab().toImage() != empty.listen.empty[0].grab().toImage(), "waveforms are drawn meanwhile"
    finder.hold(False)
    analysed(empty, qtbot)
    assert empty.canvas.lanes[0].facts is not None and tiles(empty, 0)[0] is not None
    empty.listen.hide()
    set_takes(empty, qtbot, take(-speech, "c"), None)
    assert not finder.busy and empty.canvas.lanes[0].facts is None, "nothing is computed for lanes that nobody sees"
    empty.listen.show()
    qtbot.waitUntil(lambda: empty.canvas.lanes[0].facts is not None)


def test_takes_are_dropped_as_lanes(panel: Host, qtbot) -> None:
    added = Action("Add as lane", parent=panel)
    listen = ListenPanel(panel.deck, panel.playing, panel.compared, LIGHT, added)
    qtbot.addWidget(listen)
    action, button, none = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    with qtbot.waitSignal(added.triggered):
        listen.dropEvent(QDropEvent(QPointF(9, 9), action, TakesModel().mimeData([]), button, none))
    listen.shut_down(wait=True)


def test_the_difference_covers_the_time_that_both_have() -> None:
    one = Lane("A", "a", np.full(1000, 0.5, np.float32), RATE)
    other = Lane("B", "b", np.full(900, 0.2, np.float32), RATE, gain=0.5)
    found = difference_of(one, other)
    assert found.letter == "A − B"
    np.testing.assert_allclose(found.samples, np.full(900, 0.4), atol=1e-6)


def test_the_outline_misses_no_sample_and_shows_all_of_a_close_look() -> None:
    samples = np.zeros(100_003, np.float32)
    samples[77_777], samples[100_002] = 0.9, -0.8
    times, values = outline(samples, 48000, 0.0, 3.0, 500)
    assert len(times) == len(values) <= 1002 and values.max() == np.float32(0.9)
    assert values.min() == np.float32(-0.8) and abs(times[values.argmax()] - 77_777 / 48000) < 0.01
    assert (np.diff(times) >= 0).all()
    samples = np.arange(1000, dtype=np.float32)
    times, values = outline(samples, 1000, 0.1, 0.2, 500)
    np.testing.assert_array_equal(values, samples[100:201])
    np.testing.assert_allclose(times, np.arange(100, 201) / 1000)
