"""The pages of the Help menu: first steps, every shortcut, and what this is."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QTextBrowser, QVBoxLayout, QWidget

from engine import __version__

_PANEL_KEYS = """
<h3>In the panels</h3><table>
<tr><td style='padding-right:2em'>Strategy: move in the table</td><td><b>Arrow keys</b></td></tr>
<tr><td>Strategy: cycle a cell: compute, temporal skip, branch skip</td><td><b>Space</b></td></tr>
<tr><td>Threshold: move δ; further</td><td><b>Left, Right; with Shift</b></td></tr>
<tr><td>Attention: capture the selected cell</td><td><b>Space</b></td></tr>
<tr><td>Attention: pan, zoom, show all</td><td><b>Arrow keys, + and −, 0</b></td></tr>
<tr><td>Decoding: from token to token, line to line, cycle to cycle</td>
<td><b>Left, Right; Up, Down; Page Up, Page Down</b></td></tr>
<tr><td>Decoding: play from the token</td><td><b>Space</b></td></tr>
<tr><td>Demasking: from cell to cell; a step back, a step on</td><td><b>Arrow keys; Page Up, Page Down</b></td></tr>
<tr><td>Demasking: play from the frame</td><td><b>Space</b></td></tr>
<tr><td>Layers: select a layer; keep or remove it</td><td><b>Left, Right; Space</b></td></tr>
<tr><td>Layers: keep one layer more, one less</td><td><b>Up, Down</b></td></tr>
<tr><td>Roofline: from component to component, in plot and table</td><td><b>Left, Right; Up, Down</b></td></tr>
<tr><td>Trade-off: along the front; along all points; to its ends</td>
<td><b>Left, Right; with Shift; Home, End</b></td></tr>
<tr><td>Trade-off: play the point, or stop; compare it; select all</td><td><b>Space; A, B; Ctrl+A</b></td></tr>
<tr><td>Trade-off: zoom in, out, show everything; move the section</td>
<td><b>+, −, 0; Ctrl with the arrow keys</b></td></tr>
<tr><td>Views: from point to point, from panel to panel</td><td><b>Arrow keys; Page Up, Page Down</b></td></tr>
<tr><td>Decoding, Demasking, Layers, Roofline, Strategy: copy as text</td><td><b>Ctrl+C</b></td></tr>
<tr><td>Listen: play A, play B, switch</td><td><b>A, B, X</b></td></tr>
<tr><td>Listen: play or pause</td><td><b>Space</b></td></tr>
<tr><td>Listen: back and forth; by smaller steps</td><td><b>Left, Right; with Shift</b></td></tr>
<tr><td>Listen: to the start</td><td><b>Home</b></td></tr>
<tr><td>Listen: loop on or off; its start, its end here</td><td><b>L; [, ]</b></td></tr>
<tr><td>Listen: zoom in, out, show all</td><td><b>+, −, 0</b></td></tr>
<tr><td>Lab: play A, B, X; answer what X is</td><td><b>A, B, X; 1, 2</b></td></tr>
<tr><td>Lab: play the first, the second of a pair; answer</td><td><b>A, B; 1 to 7</b></td></tr>
<tr><td>Lab: play the reference, a sound, the previous or next one; rate it; next page</td>
<td><b>R, 1 to 0, Left, Right; Up, Down, Page Up, Page Down; Return</b></td></tr>
<tr><td>Lab, before a test: play the noise, the tone; confirm the volume</td><td><b>N, T; Return</b></td></tr>
<tr><td>Lab: play or pause; loop, its start, its end; to the start</td><td><b>Space; L, [, ]; Backspace</b></td></tr>
<tr><td>Takes: compare as A, as B; star, run again, save as WAV, show file, delete</td>
<td><b>A, B; S, R, W, V, Del</b></td></tr>
<tr><td>Everywhere: next and previous control</td><td><b>Tab, Shift+Tab</b></td></tr>
</table>"""

_FIRST_STEPS = """
<h3>What Paretone does</h3>
<p>Much of the computation in diffusion text-to-speech hardly changes from step to step. DiTReducio finds what can be
skipped, and Paretone lets you hear what that costs.</p>
<ol>
<li><b>Baseline</b>: speak a sentence with every module computed.</li>
<li><b>Calibrate</b>: DiTReducio tries to skip each layer at each step; skips with an error below δ are kept.</li>
<li><b>Accelerated</b>: speak the same sentence, from the same noise, with the skips of the strategy table.</li>
<li><b>Compare</b>: play, and switch between A and B, in the middle of a word if both have the same timing; the
loudness is matched.</li>
<li><b>Export</b>: the profile contains setting, table and measurements, and runs from the command line.</li>
</ol>
<p>Speech language models decode token by token. For them, engage SSD, which drafts several tokens per pass of the
model, or SPADE, which removes layers. Decoding shows the outcome of every token, Layers the importance of layers.</p>
<p>Masked models fill in a canvas of codes: Demasking shows in which order, and plays the canvas after any step.
</p>
<p>Roofline compares the measured time of each component with the least time on this machine, without techniques and
with them: it shows whether arithmetic, memory or kernel launches limit the speed.</p>
<p>Trade-off shows every take and every setting of a study as a point, speed against quality, with the Pareto front:
click to play, walk along it, compare any two, and load the best into Setup.</p>
<p>Drag δ in the Threshold panel: the table follows at once. A predicted table says so and offers the
calibration that confirms it.</p>"""


def show_first_steps(window: QWidget) -> None:
    """What Paretone does."""
    _show_page(window, "First steps", _FIRST_STEPS)


def show_keys(window: QWidget) -> None:
    """Every action of ``window`` that has a shortcut everywhere in it, and the keys of the panels."""
    rows = []
    for action in window.findChildren(QAction):
        keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        if keys and action.shortcutContext() is Qt.ShortcutContext.WindowShortcut:
            rows.append((action.text().replace("&", "").rstrip("…"), keys))
    body = "".join(f"<tr><td style='padding-right:2em'>{name}</td><td><b>{keys}</b></td></tr>" for name, keys in rows)
    _show_page(window, "Keyboard", f"<h3>Keyboard</h3><table>{body}</table>{_PANEL_KEYS}")


def show_about(window: QWidget, machine: str) -> None:
    """Version, ``machine`` and licences."""
    _show_page(
        window,
        "About Paretone",
        f"<h3>Paretone {__version__}</h3><p>{machine or 'The engine is still starting.'}</p>"
        "<p>Licence: Apache-2.0. The weights of each model have their own licence, shown in Setup.</p>",
    )


def _show_page(window: QWidget, title: str, html: str) -> None:
    dialog = QDialog(window, windowTitle=title)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    page = QTextBrowser()
    page.setAccessibleName(title)
    page.setHtml(html)
    buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
    buttons.rejected.connect(dialog.close)
    layout = QVBoxLayout(dialog)
    layout.addWidget(page)
    layout.addWidget(buttons)
    unit = window.fontMetrics().height()
    dialog.resize(unit * 34, unit * 36)
    dialog.open()
