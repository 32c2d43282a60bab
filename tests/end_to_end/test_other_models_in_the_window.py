"""Other models in the real window: a small MegaTTS 3 of random weights, and the bundled speech language model."""

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from paretone.session.events import AudioReady
from paretone.wording import percent
from paretone_app.shell.window import MainWindow
from tests.app.conftest import typed
from tests.end_to_end.conftest import Outcome
from tests.engine.models.cosyvoice3.small_release import write_release as write_cosyvoice3
from tests.engine.models.minis.small_megatts3_mini import LAYERS, write_bundled
from tests.packages import needs
from tests.same_sound import assert_same_sound

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.usefixtures("short_prompts")]
CONTROL = Qt.KeyboardModifier.ControlModifier
MEGATTS3, LM_MINI, COSYVOICE3 = "megatts3-mini", "lm-mini", "Fun-CosyVoice3-0.5B"


def test_a_model_of_three_branches_then_a_language_model(
    window: MainWindow, outcome_of: Outcome, qtbot: QtBot, tmp_path: Path
) -> None:
    write_bundled(tmp_path / "models" / MEGATTS3)
    strategy, state = window.features["strategy"].state, window.state
    assert outcome_of(lambda: state.loading.load_model(MEGATTS3, str(tmp_path / "models" / MEGATTS3)))[0] == "finished"
    info = state.selection.info
    assert (info.id, info.branches, info.layers) == (MEGATTS3, 3, LAYERS)
    setup = window.panels["setup"]
    assert {"intelligibility", "similarity", "overshoot"} <= {knob.name for knob in setup.sampler.knobs}
    steps = setup.sampler.editor("steps")
    typed(steps, "3", qtbot)
    state.selection.set_knob("ditreducio", "threshold", 0.5)
    state.selection.set_text("Rice is good.")

    assert outcome_of(lambda: qtbot.keyClick(window, Qt.Key.Key_B, CONTROL))[0] == "finished"
    calibrate = window.features["guide"].guide.buttons[1]
    assert outcome_of(lambda: qtbot.mouseClick(calibrate, Qt.MouseButton.LeftButton))[0] == "finished"
    assert (strategy.table.layers, strategy.table.steps) == (LAYERS, 3)
    assert strategy.table.skipped_share > 0
    assert state.cost.operations.branches == 3
    predicted = state.cost.ops_ratio
    assert f"{percent(predicted, 1)}" in setup.cost.text()
    assert outcome_of(lambda: qtbot.keyClick(window, Qt.Key.Key_Return, CONTROL))[0] == "finished"
    baseline, accelerated = state.comparison.take_a, state.comparison.take_b
    assert accelerated.measurements.ops_ratio == pytest.approx(predicted)
    assert accelerated.samples.shape == baseline.samples.shape
    assert not np.array_equal(accelerated.samples, baseline.samples)
    assert accelerated.log_mel_distance > 0
    assert state.comparison.warning() == ""

    assert outcome_of(lambda: window.features["attention"].capture(1, 2))[0] == "finished"
    attention = window.panels["attention"]
    shown = [plot for plot in attention.plots if not plot.isHidden()]
    titles = [title.text().partition("<br>")[0] for title in attention.titles[: len(shown)]]
    assert titles == ["<b>speaker and text</b>", "<b>text only</b>", "<b>unconditional</b>"]

    # A recording that it cannot use is answered with a sentence, and the window goes on.
    state.selection.set_text("Wie geht es dir heute, und was ist das für ein Buch?")
    assert "looks like German" in outcome_of(state.synthesis.synthesise_baseline)[1]

    # A language model instead: heard while it is decoded, with a draft, and with fewer layers.
    assert outcome_of(lambda: state.loading.load_model(LM_MINI))[0] == "finished"
    assert (state.selection.info.id, state.selection.info.family) == (LM_MINI, "language")
    known = {"compilation", "graphs", "spade", "speculative", "token_groups", "weight_only"}
    assert {one.name for one in state.selection.techniques} == known
    temperature = window.panels["setup"].sampler.editor("temperature")
    typed(temperature, "0", qtbot)
    assert state.selection.setting.options["temperature"] == 0
    state.selection.set_text("Rice.")
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


@needs("onnx", "onnxruntime", "tokenizers")
def test_the_flow_after_a_language_model_has_its_panels(
    window: MainWindow, outcome_of: Outcome, tmp_path: Path
) -> None:
    write_cosyvoice3(tmp_path / "models" / COSYVOICE3)
    state, strategy, panels = window.state, window.features["strategy"].state, window.panels
    place = str(tmp_path / "models" / COSYVOICE3)
    assert outcome_of(lambda: state.loading.load_model(COSYVOICE3, place))[0] == "finished"
    shown = {place.name for place, dock in window.workspaces.shown if not dock.isHidden()}
    window.workspaces.go_to("strategy")
    shown |= {place.name for place, dock in window.workspaces.shown if not dock.isHidden()}
    assert {"strategy", "threshold", "grids", "attention", "transfer", "decoding", "layers"} <= shown
    state.selection.set_text("Rain comes.")
    assert "flow" not in panels["setup"].cost.text()
    state.selection.switch("ditreducio", True)
    state.selection.set_knob("ditreducio", "threshold", 2.0)
    assert outcome_of(strategy.calibrate)[0] == "finished"
    ratio = strategy.table.ops_ratio(state.cost.operations)
    assert ratio < 1 and f"The flow needs <b>{percent(ratio, 1)}</b>" in panels["setup"].cost.text()
    assert outcome_of(state.synthesis.synthesise_accelerated)[0] == "finished"
    take = state.comparison.take_b
    assert ratio < take.measurements.ops_ratio < 1, "tokens count too"
    assert outcome_of(lambda: window.features["attention"].capture(1, 2))[0] == "finished"
    views = window.features["views"]
    views.open("temporal-redundancy")
    panels["views"].choose("tables")
    assert outcome_of(views.compute)[0] == "finished"
    assert panels["views"].figure is not None
