"""How many files a stranger reads to follow one thing from end to end; ``resources/docs/architecture.md`` has the
walks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from paretone.models.networks import diffusion
from paretone.session import synthesis
from paretone.session.engine_thread import EngineThread
from paretone.setting.plan import Part
from paretone.techniques.ditreducio.record import CalibrationRecord
from paretone_app.audio.mixer import Mixer
from paretone_app.audio.player import Player
from paretone_app.features.strategy.state import NAME, StrategyState
from paretone_app.shell.bridge import Bridge
from paretone_app.shell.theme import Theme
from paretone_app.shell.window import MainWindow
from tests.app.conftest import PATIENCE_MILLISECONDS, close
from tests.prompts import short_prompts  # noqa: F401
from tests.sound import NullSink, null_sink  # noqa: F401
from tests.walks import Walk

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("short_prompts")]
TO_THE_LOUDSPEAKER, TO_A_SKIPPED_LAYER = 22, 14
"""Most files of each walk."""


@pytest.fixture
def window(
    null_sink: NullSink,  # noqa: F811
    theme: Theme,
    qapp: QApplication,
    qtbot: QtBot,
    tmp_path: Path,
) -> Iterator[MainWindow]:
    """The real window on f5-mini, with sound."""
    qapp.setQuitOnLastWindowClosed(False)
    settings = QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)
    made = MainWindow(theme, settings, tmp_path / "data", EngineThread)
    made.show()
    player = made.features["player"].player
    ready = lambda: made.is_built and made.state.selection.ready and player.usable and not made.jobs.busy  # noqa: E731
    qtbot.waitUntil(ready, timeout=PATIENCE_MILLISECONDS)
    made.state.selection.set_text("Rice.")
    made.state.selection.set_option("steps", 3)
    yield made
    close(made, qtbot)


def done(window: MainWindow, qtbot: QtBot, begin: Callable[[], None]) -> None:
    """Have a job done."""
    with qtbot.waitSignal(window.jobs.ended, timeout=PATIENCE_MILLISECONDS) as blocker:
        begin()
    assert blocker.args[1].value == "finished", blocker.args[2]


def test_a_text_to_the_loudspeaker(window: MainWindow, qtbot: QtBot) -> None:
    walk = Walk(
        submit=(EngineThread, "submit"),
        resolve=(synthesis, "resolve"),
        step=(diffusion.DiffusionTransformer, "layer"),
        post=(Bridge, "post"),
        deliver=(Player, "append"),
        mixer=(Mixer, "render"),
    )
    with walk:
        done(window, qtbot, window.action.baseline.trigger)
        qtbot.waitUntil(lambda: not walk.unreached, timeout=PATIENCE_MILLISECONDS)
    print(walk)
    assert len(walk.files) <= TO_THE_LOUDSPEAKER, walk


def test_delta_to_a_skipped_layer(window: MainWindow, qtbot: QtBot) -> None:
    window.state.selection.switch(NAME, True)
    done(window, qtbot, window.action["calibrate"].trigger)
    window.workspaces.go_to("threshold")
    panel = window.panels["threshold"]
    walk = Walk(
        delta=(StrategyState, "set_threshold"),
        table=(CalibrationRecord, "derive"),
        plan=(Part, "of"),
        layer=(diffusion, "apply_module"),
    )
    with walk:
        for _ in range(3):
            qtbot.keyClick(panel.histogram, Qt.Key.Key_Right)
        done(window, qtbot, window.action.accelerated.trigger)
    assert not walk.unreached, walk
    assert window.state.comparison.take_b.measurements.ops_ratio < 1
    print(walk)
    assert len(walk.files) <= TO_A_SKIPPED_LAYER, walk
