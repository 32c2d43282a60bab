"""A small masked model in the real window on the real engine: heard whole, in blocks, and what is not for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from paretone.session.events import PartialDecoded
from paretone.techniques import blockwise, ditreducio, fewer_steps, guidance_stride
from paretone_app.audio.player import Mode
from paretone_app.audio.sound import Sound
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Kind, Outcome
from tests.app.conftest import SMALL, MakeWindow
from tests.app.features.other_families import PATIENCE, choose, ended, window_with
from tests.app.sharing import borrowed  # noqa: F401
from tests.engine.models.omnivoice.small_release import TEXT, fail_once, write_release

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
OPTIONS = {"clone": False, "steps": 6, "post_process": False}
PARTS = f"{SMALL} strategy threshold meters views log demasking"
LOOKED_AT = ("takes", "demasking")
LOADS = "OmniVoice"


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_release(tmp_path_factory.mktemp("masked"))


@pytest.fixture(scope="module")
def shared_window(shared_window: MainWindow, surroundings: Path, request: pytest.FixtureRequest) -> MainWindow:
    choose(shared_window, "OmniVoice", surroundings, TEXT, OPTIONS, QtBot(request))
    return shared_window


def test_takes_of_equal_length_are_switched_in_step(window: MainWindow, qtbot: QtBot) -> None:
    state, listen = window.state, window.features["player"]
    assert ended(window, qtbot, state.synthesis.synthesise_baseline)[:2] == (Kind.BASELINE, Outcome.FINISHED)
    state.selection.switch(fewer_steps.NAME, True)
    state.selection.set_knob(fewer_steps.NAME, "steps", 3)
    assert "after a run" in window.panels["setup"].cost.text()
    assert ended(window, qtbot, state.synthesis.synthesise_accelerated)[:2] == (Kind.ACCELERATED, Outcome.FINISHED)
    qtbot.waitUntil(lambda: state.comparison.take_b is not None, timeout=PATIENCE)
    assert len(state.comparison.take_a.samples) == len(state.comparison.take_b.samples)
    assert state.comparison.take_b.measurements.ops_ratio == pytest.approx(0.5)
    qtbot.waitUntil(lambda: len(listen.deck.loaded) == 2 and not listen.player.streaming, timeout=PATIENCE)
    assert listen.player.comparison.mode is Mode.SYNC
    rates = {name: window.panels["meters"].figures[name].name.text() for name in ("rate", "step")}
    assert rates == {"rate": "Steps/s", "step": "Step"}


def test_blocks_are_spoken_and_kept(window: MainWindow, qtbot: QtBot) -> None:
    state = window.state
    state.selection.switch(blockwise.NAME, True)
    for name, value in (("first_block", 16), ("block", 16), ("first_steps", 2), ("later_steps", 3)):
        state.selection.set_knob(blockwise.NAME, name, value)
    kind, outcome, sentence = ended(window, qtbot, state.synthesis.synthesise_accelerated)
    assert (kind, outcome) == (Kind.ACCELERATED, Outcome.FINISHED), sentence
    qtbot.waitUntil(lambda: state.comparison.take_b is not None, timeout=PATIENCE)
    (passage,) = state.comparison.take_b.trace.demasking.passages
    assert len(passage.blocks) > 1
    assert state.comparison.take_b.measurements.first_audio_seconds < state.comparison.take_b.measurements.seconds


def test_the_panels_offer_what_the_family_has(window: MainWindow) -> None:
    strategy = window.features["strategy"].state
    state, views = window.state, window.panels["views"]
    offered = {one.name for one in state.selection.techniques}
    assert offered >= {blockwise.NAME, fewer_steps.NAME, guidance_stride.NAME, "precision", "guidance_interval"}
    assert not offered & {ditreducio.TECHNIQUE.name, "steps", "speculative", "spade", "error_curve", "first_block"}
    assert [views.chooser.itemData(one) for one in range(views.chooser.count())] == ["codebooks"]
    assert not state.availability.why_not_synthesise()
    reason = strategy.why_no_table()
    assert "DiTReducio is for flow models" in reason
    assert strategy.why_not_prepare() == strategy.why_not_transfer() == reason
    assert window.panels["strategy"].grid.empty_text() == window.panels["threshold"].verdict.text() == reason
    window.panels["setup"].grid.show_options(state.selection.options)
    assert "6 steps, schedule 0.1" in window.panels["setup"].grid.toolTip()


def logged(window: MainWindow) -> str:
    return window.panels["log"].plain_text()


def cautioned(window: MainWindow) -> str:
    """The panel Listen's warning about the comparison."""
    labels = window.features["listen"].listen.findChildren(QLabel)
    return next(one.text() for one in labels if one.accessibleName() == "Warning")


@pytest.fixture
def own_window(make_window: MakeWindow, parts: str, surroundings: Path, qtbot: QtBot) -> Iterator[MainWindow]:
    with window_with("OmniVoice", surroundings, TEXT, OPTIONS, make_window, qtbot, parts) as made:
        yield made


def test_what_is_wrong_is_said(own_window: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's sentences are in ``tests/engine/session/test_masked_input.py``."""
    window, state, banner = own_window, own_window.state, own_window.notices.banner
    failed, finished = (Kind.BASELINE, Outcome.FAILED), (Kind.BASELINE, Outcome.FINISHED)

    state.selection.set_option("language", "Klingon")
    assert ended(window, qtbot, state.synthesis.synthesise_baseline)[:2] == finished
    qtbot.waitUntil(lambda: "does not know the language 'Klingon'" in logged(window), timeout=PATIENCE)
    assert "Klingon" in banner.text
    state.selection.set_option("language", "")

    state.selection.set_option("duration", 600.0)
    assert ended(window, qtbot, state.synthesis.synthesise_baseline)[:2] == failed
    assert banner.text.startswith("A duration of 600 s is too far from what this text usually takes")
    assert cautioned(window).startswith("The last take A failed: A duration of 600 s")
    assert cautioned(window).endswith("A still plays the previous take.")
    state.selection.set_option("duration", 0.0)

    fail_once(monkeypatch)
    assert ended(window, qtbot, state.synthesis.synthesise_baseline)[:2] == failed
    assert "The graphics card failed while synthesising; the model is loaded again" in banner.text
    assert cautioned(window).startswith("The last take A failed: The graphics card failed")
    qtbot.waitUntil(lambda: "was loaded again, on CPU" in logged(window), timeout=PATIENCE)
    qtbot.waitUntil(lambda: not state.availability.why_not_synthesise(), timeout=PATIENCE)
    assert ended(window, qtbot, state.synthesis.synthesise_baseline)[:2] == finished
    assert "failed" not in cautioned(window)


def test_a_canvas_is_seen_and_heard_as_it_stood(shared_window: MainWindow, qtbot: QtBot) -> None:
    """The last to see that window."""
    window, state = shared_window, shared_window.state
    panel, listen = window.panels["demasking"], window.features["player"]
    assert ended(window, qtbot, state.synthesis.synthesise_baseline)[1] is Outcome.FINISHED
    qtbot.waitUntil(lambda: panel.side == "A" and panel.passage is not None, timeout=PATIENCE)
    assert panel.passage is state.comparison.take_a.trace.demasking.passages[0]
    qtbot.waitUntil(lambda: not listen.player.streaming, timeout=PATIENCE)
    panel.go_to(1)
    assert panel.partial_button.isEnabled(), panel.partial_button.toolTip()
    heard: list[tuple[PartialDecoded, Mode]] = []

    def follow(event: object) -> None:
        # The window has heard of it before: what is played is looked at before it ends.
        if isinstance(event, PartialDecoded):
            heard.append((event, listen.player.comparison.mode))

    window.bridge.happened.connect(follow)
    panel.codebooks.setCurrentIndex(panel.codebooks.findData(2))
    assert ended(window, qtbot, panel.partial_button.click)[:2] == (Kind.PARTIAL, Outcome.FINISHED)
    ((sound, mode),) = heard
    assert sound.step == 1 and len(sound.samples) == panel.passage.codes.shape[1] * 960
    assert mode is Mode.ALONE, "it is played without being a take"
    # Whether there is a device or not: the mark follows what is heard, from the canvas's beginning.
    assert state.playing.now.title.startswith("Canvas of take A after step 2, first 2 of its codebooks · ")
    listen.player.pause()
    listen.deck.seek(0.0)
    listen.deck.seek(0.4)
    qtbot.waitUntil(lambda: panel.grid.position == pytest.approx(10, abs=0.01), timeout=PATIENCE)
    listen.deck.seek(len(sound.samples) / sound.sample_rate)
    qtbot.waitUntil(lambda: panel.grid.position > 10.5, timeout=PATIENCE)
    assert panel.grid.position < panel.passage.codes.shape[1], "not in the next passage yet"
    listen.hear_sound(Sound(sound.samples, sound.sample_rate, "A study's"))
    assert panel.grid.position is None, "a sound of neither side has no place here"
    state.loading.load_model("f5-mini", device="cpu")
    qtbot.waitUntil(lambda: state.selection.ready and not window.jobs.busy, timeout=PATIENCE)
    assert not panel.partial_button.isEnabled() and "load that model" in panel.partial_button.toolTip()
