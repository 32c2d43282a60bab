"""Files that a stranger reads to follow one thing from end to end: the walks of ``resources/docs/architecture.md``."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from paretone.models.networks import diffusion
from paretone.paths import CHECKOUT
from paretone.session import synthesis
from paretone.session.engine_thread import EngineThread
from paretone.studies.store import Store
from paretone.techniques import ditreducio
from paretone.techniques.ditreducio.record import CalibrationRecord
from paretone_app.audio.mixer import Mixer
from paretone_app.audio.player import Player
from paretone_app.features.strategy.state import NAME, StrategyState
from paretone_app.plotting.scatter import ScatterLayers
from paretone_app.results import study
from paretone_app.results.reader import Results
from paretone_app.shell.theme import Theme
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Outcome
from tests.app.conftest import close, run, typed
from tests.app.features.studies.studying import ended, opened, write
from tests.sound import NullSink
from tests.walks import ENGINE, Walk

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("short_prompts")]
TO_THE_LOUDSPEAKER, TO_A_SKIPPED_LAYER, TO_A_POINT = 22, 14, 18
"""Most files of each walk."""
PAGE = CHECKOUT / "resources/docs/architecture.md"


@pytest.fixture
def walks() -> Iterator[tuple[Walk, Walk, Walk]]:
    """From the text to the loudspeaker, from δ to a skipped layer, from *Run study* to a point on the plot."""
    made = (
        Walk(
            submit=(EngineThread, "submit"),
            resolve=(synthesis, "resolve"),
            step=(diffusion.DiffusionTransformer, "layer"),
            deliver=(Player, "append"),
            mixer=(Mixer, "render"),
        ),
        Walk(
            delta=(StrategyState, "set_threshold"),
            table=(CalibrationRecord, "derive"),
            plan=(ditreducio, "require_sampling", ENGINE),
            layer=(diffusion, "apply_module"),
        ),
        Walk(
            submit=(EngineThread, "submit"),
            store=(Store, "add_take"),
            signal=(Results, "read_study"),
            read=(study, "study_points"),
            plot=(ScatterLayers, "show"),
        ),
    )
    yield made
    for walk in made:
        walk.close()


@pytest.fixture
def window(
    walks: object, null_sink: NullSink, theme: Theme, qapp: QApplication, qtbot: QtBot, tmp_path: Path
) -> Iterator[MainWindow]:
    """The real window on f5-mini, with sound; the walks watch its methods from the beginning."""
    qapp.setQuitOnLastWindowClosed(False)
    settings = QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)
    made = MainWindow(theme, settings, tmp_path / "data", EngineThread)
    made.show()
    player = made.features["player"].player
    qtbot.waitUntil(lambda: made.is_built and made.state.selection.ready and player.usable and not made.jobs.busy)
    made.state.selection.set_text("Rice.")
    made.state.selection.set_option("steps", 2)
    yield made
    close(made, qtbot)


def test_nobody_gets_lost(window: MainWindow, qtbot: QtBot, tmp_path: Path, walks: tuple[Walk, Walk, Walk]) -> None:
    loudspeaker, delta, point = walks
    with loudspeaker:
        assert run(window, window.action.baseline, qtbot) is Outcome.FINISHED
        qtbot.waitUntil(lambda: bool(loudspeaker.stacks["mixer"]))
    window.state.selection.switch(NAME, True)
    assert run(window, window.action["calibrate"], qtbot) is Outcome.FINISHED
    window.workspaces.go_to("threshold")
    with delta:
        typed(window.panels["threshold"].spin_box, "0.5", qtbot)
        assert run(window, window.action.accelerated, qtbot) is Outcome.FINISHED
    assert window.state.comparison.take_b.measurements.ops_ratio < 1, "layers were skipped"
    opened(window, write(tmp_path, sentences=1), qtbot)
    window.workspaces.go_to("tradeoff")
    with point:
        ended(window, window.action["run_study"].trigger, qtbot)
    print(*walks, sep="\n")
    assert {one.folder for one in window.panels["tradeoff"].scene.points} >= {tmp_path / "small.study"}
    assert not loudspeaker.unreached and not delta.unreached and not point.unreached
    assert len(loudspeaker.files) <= TO_THE_LOUDSPEAKER, loudspeaker
    assert len(delta.files) <= TO_A_SKIPPED_LAYER, delta
    assert len(point.files) <= TO_A_POINT, point
    for walk, title in zip(walks, ("A text to the", "δ to a skipped", "*Run study* to"), strict=True):
        (page,) = re.findall(rf"^### {re.escape(title)}.*?(?=^##)", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
        assert {one for one in walk.files if f"`{one}`" not in page} == set(), title
        assert f"{len(walk.files)} files" in page
