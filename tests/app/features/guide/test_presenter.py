"""The guide ticks what was done for what is selected now; what was done for another selection shows as changed."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.shell.window import MainWindow
from tests.app.shell.running import run


def steps(window: MainWindow) -> dict[str, str]:
    """The steps by their titles, each with its mark."""
    guide = window.features["guide"].guide
    texts = [guide.button(index).text() for index in range(5)]
    names = [text[3:].removesuffix(" (changed)") for text in texts]
    marks = ["changed" if text.endswith(" (changed)") else "done" if text[0] == "✓" else "" for text in texts]
    return dict(zip(names, marks, strict=True))


def test_ticks_follow_the_selection(window: MainWindow, qtbot: QtBot) -> None:
    chosen = window.state.selection
    assert set(steps(window).values()) == {""}
    for action in (window.action.baseline, window.action["calibrate"], window.action.accelerated):
        run(window, action, qtbot)
    window.features["listen"]._note_compared()
    done = {"Baseline": "done", "Calibrate": "done", "Accelerated": "done", "Compare A/B": "done", "Export profile": ""}
    assert steps(window) == done
    text = chosen.text
    chosen.set_text("Another text.")
    changed = {
        "Baseline": "changed",
        "Calibrate": "done",
        "Accelerated": "changed",
        "Compare A/B": "changed",
        "Export profile": "",
    }
    assert steps(window) == changed
    hint = window.features["guide"].guide.hint
    assert "press <b>Baseline</b>" in hint and hint.endswith("It was done before, for another selection.")
    assert window.features["guide"].guide.button(0).accessibleName() == "Step 1: Baseline, changed"
    chosen.set_text(text)
    assert steps(window) == done
    # Another grid has no strategy table yet.
    chosen.set_option("steps", 7)
    assert steps(window) == {**changed, "Calibrate": "changed"}
    chosen.set_option("steps", window.state.comparison.take_a.setting.options["steps"])
    assert steps(window) == done
