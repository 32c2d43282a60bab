"""The guide ticks what was done for what is selected now; what was done for another selection shows as changed."""

from pytestqt.qtbot import QtBot

from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Outcome
from tests.app.conftest import SMALL, run

PARTS = f"{SMALL} strategy threshold export guide"
LOOKED_AT = ("takes",)


def steps(window: MainWindow) -> dict[str, str]:
    texts = [button.text() for button in window.features["guide"].guide.buttons[:5]]
    return {text[3:]: {"✓": "done", "↻": "changed"}.get(text[0], "") for text in texts}


def test_ticks_follow_the_selection(window: MainWindow, qtbot: QtBot) -> None:
    chosen = window.state.selection
    assert set(steps(window).values()) == {""}
    assert "Baseline" in window.features["guide"].guide.hint.text() and window.action.baseline.isEnabled()
    assert not window.action.accelerated.isEnabled() and "calibrate first" in window.action.accelerated.toolTip()
    for action, following in (
        (window.action.baseline, "Calibrate"),
        (window.action["calibrate"], "Accelerated"),
        (window.action.accelerated, "Compare"),
    ):
        assert not window.action.compare.isEnabled() and run(window, action, qtbot) is Outcome.FINISHED
        assert following in window.features["guide"].guide.hint.text()
    window.action.compare.trigger()
    assert "Export" in window.features["guide"].guide.hint.text()
    done = {"Baseline": "done", "Calibrate": "done", "Accelerated": "done", "Compare A/B": "done", "Export profile": ""}
    guide = window.features["guide"].guide
    assert steps(window) == done and not guide.hint.isHidden()
    guide.show_progress([True] * len(done), [False] * len(done))
    assert guide.hint.isHidden(), "all done, it is one line"
    text = chosen.text
    chosen.set_text("Another text.")
    changed = done | dict.fromkeys(("Baseline", "Accelerated", "Compare A/B"), "changed")
    assert steps(window) == changed and "press <b>Baseline</b>" in guide.hint.text()
    assert guide.hint.text().endswith("It was done before, for another selection.")
    assert guide.buttons[0].accessibleName() == "Step 1: Baseline, changed"
    chosen.set_text(text)
    assert steps(window) == done
    # Another grid has no strategy table yet.
    chosen.set_option("steps", 7)
    assert steps(window) == {**changed, "Calibrate": "changed"}
    chosen.set_option("steps", window.state.comparison.take_a.setting.options["steps"])
    assert steps(window) == done


def test_calibrate_is_no_next_step_while_its_technique_is_off(borrowed_window: MainWindow, qtbot: QtBot) -> None:
    window = borrowed_window
    chosen, guide = window.state.selection, window.features["guide"].guide
    run(window, window.action.baseline, qtbot)
    assert "press <b>Calibrate</b>" in guide.hint.text()
    chosen.switch("ditreducio", False)
    assert "switch a technique on" in guide.hint.text()
    strategy, threshold = window.features["strategy"].strategy, window.features["threshold"].threshold
    for said in (strategy.grid.empty_text(), threshold.verdict.text()):
        assert "switch DiTReducio on in Setup, then calibrate" in said
    chosen.switch("steps", True)
    assert "press <b>Accelerated</b>" in guide.hint.text(), "step pruning needs no table"
    assert not guide.buttons[1].isVisible()
    chosen.switch("steps", False)
    chosen.switch("ditreducio", True)
    assert "press <b>Calibrate</b>" in guide.hint.text() and "calibrate first" in strategy.grid.empty_text()
    # What stands against the next step is said in its place.
    window.state.selection.set_text("")
    said = window.action.baseline.toolTip()
    assert not window.action.baseline.isEnabled() and said
    assert guide.hint.text() == f"<b>Next:</b> {said} It was done before, for another selection."
