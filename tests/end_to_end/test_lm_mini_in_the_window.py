"""The bundled speech language model in the real window: heard, drafted, pruned, and in the voice of a recording."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from paretone.models.base import Voice
from paretone.models.catalogue import voices
from paretone.session.engine_thread import EngineThread
from paretone.session.events import AudioReady
from paretone_app.shell.theme import Scheme, Theme
from paretone_app.shell.window import MainWindow
from tests.app.conftest import close
from tests.same_sound import assert_same_sound
from tests.workload import workload

PATIENCE_MILLISECONDS = 240_000
"""When the test gives up; never what it measures."""
CONTROL = Qt.KeyboardModifier.ControlModifier
MODEL = "lm-mini"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_from_baseline_to_speculative_decoding(qapp: QApplication, theme: Theme, qtbot: QtBot, tmp_path: Path) -> None:
    qapp.setQuitOnLastWindowClosed(False)
    settings = QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)
    window = MainWindow(theme, settings, tmp_path / "data", EngineThread)
    strategy = window.features["strategy"].state
    window.theme.apply(Scheme.LIGHT)
    window.resize(1440, 900)
    window.show()
    window.activateWindow()
    state = window.state
    qtbot.waitUntil(lambda: window.is_built and state.selection.ready, timeout=PATIENCE_MILLISECONDS)

    def outcome_of(press: Callable[[], object]) -> tuple[str, str]:
        qtbot.waitUntil(lambda: not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
        with qtbot.waitSignal(window.jobs.ended, timeout=PATIENCE_MILLISECONDS) as blocker:
            press()
        return blocker.args[1].value, blocker.args[2]

    assert outcome_of(lambda: state.loading.load_model(MODEL))[0] == "finished"
    assert (state.selection.info.id, state.selection.info.family) == (MODEL, "language")
    known = {"compilation", "graphs", "spade", "speculative", "token_groups", "weight_only"}
    assert {one.name for one in state.selection.techniques} == known
    temperature = window.panels["setup"].sampler.editor("temperature")
    temperature.setFocus()
    temperature.selectAll()
    qtbot.keyClicks(temperature, "0")
    qtbot.keyClick(temperature, Qt.Key.Key_Return)
    assert state.selection.setting.options["temperature"] == 0
    state.selection.set_text(workload("Rice is often served in round bowls.", "Rice is often served."))
    pieces: list[AudioReady] = []
    window.bridge.happened.connect(lambda event: pieces.append(event) if isinstance(event, AudioReady) else None)

    assert outcome_of(lambda: qtbot.keyClick(window, Qt.Key.Key_B, CONTROL))[0] == "finished"
    baseline = state.comparison.take_a
    assert len(pieces) > 1, "it is heard while it is decoded"
    assert baseline.trace.decoding is not None
    assert state.cost.operations is None
    assert strategy.compatibility() is None

    state.selection.switch("speculative", True)
    assert state.availability.why_not_accelerate() == ""
    assert outcome_of(lambda: qtbot.keyClick(window, Qt.Key.Key_Return, CONTROL))[0] == "finished"
    accelerated = state.comparison.take_b
    # Greedy decoding says the same with a draft and without.
    assert accelerated.trace.decoding.tokens == baseline.trace.decoding.tokens
    assert_same_sound(accelerated.samples, baseline.samples)
    assert accelerated.measurements.target_passes < baseline.measurements.target_passes

    state.selection.switch("speculative", False)
    state.selection.switch("spade", True)
    assert outcome_of(lambda: qtbot.keyClick(window, Qt.Key.Key_Return, CONTROL))[0] == "finished"
    assert state.comparison.take_b.measurements.ops_ratio < 0.7
    assert state.comparison.take_b.trace.decoding.tokens != baseline.trace.decoding.tokens

    # It speaks as in a recording of one's own, too, whose phones have to be found in it.
    recording = voices(MODEL)[1]
    own = Voice("own:me.wav", "me", recording.audio, recording.transcript)
    state.own_voices.add(own)
    assert outcome_of(state.synthesis.synthesise_baseline) == ("finished", "")
    assert state.comparison.take_a.voice == own.id

    close(window, qtbot)
