"""The main job as a blind person does it: by keys and by what a screen reader says, in a window of its own process.

Everything is read from the accessibility bus (AT-SPI), nothing from the window's code.
"""

import re
import sys
from pathlib import Path

import pytest

from tests.screen import give_keyboard
from tests.screen_reader import Accessible, ScreenReader, reading
from tests.sound import NullSink
from tests.workload import is_thorough

WORKSPACES = "Listen", "Inspect", "Explore", "Test", "Train"
IDENTITIES = re.compile(r"baseline|ditreducio|pruning|F5|take [AB]\b|RTF|\bops\b", re.IGNORECASE)
"""What tells one setting from another."""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_main_job_by_ear(display: str, null_sink: NullSink, tmp_path: Path) -> None:
    settings = tmp_path / "window.ini"
    settings.write_text("[General]\ngreeted=true\n")  # Else it would speak before it is asked to.
    command = [sys.executable, "-m", "paretone_app", "--data", str(tmp_path / "data"), "--settings", str(settings)]
    with reading(command, {"DISPLAY": display}) as (reader, program):
        reader.wait(lambda: _said(reader, "Loading the model: finished"), "the model was not loaded")
        give_keyboard(display)
        window = program.children()[0]
        _choose(reader)
        _make_both(reader, program, display)
        _play(reader)
        _listen_blindly(reader, window)
        _arrange_lanes(reader)
        _queue(reader)
        if is_thorough():
            _weigh(reader)
            _walk(reader, window)


def _said(reader: ScreenReader, part: str) -> bool:
    return any(part in one.text for one in reader.listen())


def _choose(reader: ScreenReader) -> None:
    """A text, a voice and a model, as a field and lists say them."""
    assert reader.hear("Alt+1", "Text to speak · text")
    reader.press("Ctrl+A")
    for key in "good":
        reader.press(key)
    assert reader.reach("Voice · Anna")
    assert reader.hear("Down", "Bella", "change")
    assert reader.reach("Model · F5 mini · combo box")
    assert reader.hear("Down", "weights not installed", "change")
    assert reader.hear("Up", "F5 mini", "change")


def _make_both(reader: ScreenReader, program: Accessible, display: str) -> None:
    """A without techniques, then B with the given one and one found by name, once calibrated; ends are announced."""
    assert reader.hear("Ctrl+B", "Synthesising the baseline: finished", "announcement")
    assert "checked" in reader.reach("Use DiTReducio")
    assert reader.hear("Ctrl+T", "Search techniques", "focus")
    for key in "pruning":
        reader.press(key)
    reader.press("Return")
    reader.wait(lambda: len(program.children()) == 1, "the list of techniques did not close")
    give_keyboard(display)  # A window manager gives it to the window below.
    reader.wait(lambda: any("Use Step pruning · check box · checked" in one.text for one in reader.listen()), "no card")
    assert reader.hear("Ctrl+K", "Calibrating: finished", "announcement")
    assert reader.hear("Ctrl+Return", "Synthesising with techniques: finished", "announcement")


def _play(reader: ScreenReader) -> None:
    """Play, and switch in the middle: what sounds is announced."""
    assert reader.hear("Ctrl+2", "Inspect", "announcement")
    assert reader.hear("Ctrl+1", "Listen")
    assert reader.reach("Listen · panel")
    assert reader.hear("l", "Loop from", "announcement")
    first = reader.hear("Ctrl+Space", "Playing: Take", "announcement")
    assert reader.hear("x", "Take A" if "Take B" in first else "Take B", "announcement")
    assert reader.hear("s", "Paused", "announcement")
    assert reader.hear("l", "Loop off", "announcement")


def _arrange_lanes(reader: ScreenReader) -> None:
    """From lane to lane: what each is, which is heard, the reference, the order, a note."""
    assert reader.hear("Ctrl+1", "Listen")
    reader.press("1")
    assert "Lane A: Baseline" in reader.reach("Lane A") and "Reference" in reader.heard[-1].text
    assert reader.hear("2", "Take B", "announcement")
    assert "RTF" in reader.reach("Lane B: DiTReducio")
    assert reader.hear("p", "Reference", "change")
    assert reader.hear("Alt+Up", "Lane A: DiTReducio", "focus")
    assert reader.hear("t", "Note on lane A", "focus")
    reader.press("h")
    reader.press("Return")
    assert "Note: h" in reader.reach("Lane A: DiTReducio", "Shift+Tab")


def _queue(reader: ScreenReader) -> None:
    """Three takes wait: each says its place, can be moved and cancelled; then the others are made."""
    assert reader.hear("Ctrl+Shift+J", "Nothing runs or waits", "focus")
    reader.reach("Pause all")
    assert reader.hear("Space", "checked", "state")
    for _ in range(3):
        reader.press("Ctrl+B")
    assert "3 jobs wait, paused" in reader.reach("Queue: 3")
    reader.hear("Ctrl+Shift+J", "", "focus")
    reader.reach("Queue · table")
    assert "paused" in reader.hear("Down", "2 of 3: “", "focus")
    assert reader.hear("Alt+Up", "1 of 3: “", "focus")
    assert reader.hear("Delete", "cancelled", "announcement")
    assert reader.hear("Down", "2 of 2: “", "focus")
    reader.reach("Go on with all")
    assert reader.hear("Space", "Synthesising the baseline: finished", "announcement")


def _weigh(reader: ScreenReader) -> None:
    """Go from point to point of the trade-off."""
    assert reader.hear("Ctrl+3", "Explore", "announcement")
    assert "chart" in reader.reach("Trade-off plot")
    # Which of the two is faster, and whether the other one is on the front, is the machine's affair.
    heard = {reader.hear(key, "RTF", "announcement") for key in ("Home", "Shift+Right", "Shift+Left")}
    assert len(heard) > 1


def _listen_blindly(reader: ScreenReader, window: Accessible) -> None:
    """A trial of ABX, of which nothing is heard that says what X is, then out of it."""
    assert reader.hear("Ctrl+4", "What · ABX", "focus")
    reader.reach("Number of trials")
    reader.reach("Practice trials")
    reader.press("Ctrl+A")
    reader.press("0")
    reader.reach("Begin")
    assert "comfortable volume" in reader.hear("Space", "Volume", "focus")
    before = len(reader.listen())
    assert reader.hear("Return", "ABX · 1 of", "announcement")
    for key in ("a", "b", "x"):
        reader.press(key)
    test = next(one for one in window.showing() if one.role == "panel" and one.name == "ABX")
    button = next(one for one in test.showing() if one.name == "X is A")
    reader.wait(lambda: "enabled" in button.states, "X was not heard")
    assert not [one for one in map(Accessible.spoken, test.showing()) if IDENTITIES.search(one)]
    assert reader.hear("1", "ABX · 2 of", "announcement")
    said = [one.text for one in reader.listen()[before:]]
    assert not [one for one in said if IDENTITIES.search(one)], said
    reader.reach("Abandon the test")
    reader.press("Space")
    assert reader.hear("Space", "Listening test abandoned", "announcement")


def _walk(reader: ScreenReader, window: Accessible) -> None:
    """Everything in every workspace has a name and a role."""
    unheard = []
    for number, title in enumerate(WORKSPACES, 1):
        reader.hear(f"Ctrl+{number}", title)
        unheard += _unheard(window, title)
    assert not unheard, "\n".join(unheard)


def _unheard(window: Accessible, where: str) -> list[str]:
    """What on the screen can have the focus without a name, or is painted without a role."""
    found = []
    for one in window.showing():
        focusable, role = "focusable" in one.states, one.role
        # A label without text has nothing to say.
        if focusable and role != "label" and not (one.name or one.label):
            found.append(f"{where}: a {role} that can have the focus has no name")
        if role == "combo box" and not one.label:
            found.append(f"{where}: nothing says what “{one.name}” chooses")
        if role == "filler" and (focusable or (one.name and not one.label)):
            found.append(f"{where}: “{one.name}” has no role")
    return found
