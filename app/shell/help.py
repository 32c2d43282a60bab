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
<tr><td>Attention: capture the chosen cell</td><td><b>Space</b></td></tr>
<tr><td>Attention: pan, zoom, show all</td><td><b>Arrow keys, + and −, 0</b></td></tr>
<tr><td>Decoding: from token to token, line to line, cycle to cycle</td>
<td><b>Left, Right; Up, Down; Page Up, Page Down</b></td></tr>
<tr><td>Decoding: hear from the token</td><td><b>Space</b></td></tr>
<tr><td>Demasking: from cell to cell; a step back, a step on</td><td><b>Arrow keys; Page Up, Page Down</b></td></tr>
<tr><td>Demasking: hear from the frame</td><td><b>Space</b></td></tr>
<tr><td>Layers: choose a layer; keep or remove it</td><td><b>Left, Right; Space</b></td></tr>
<tr><td>Layers: keep one layer more, one less</td><td><b>Up, Down</b></td></tr>
<tr><td>Roofline: from component to component, in plot and table</td><td><b>Left, Right; Up, Down</b></td></tr>
<tr><td>Trade-off: along the front; along all points; to its ends</td>
<td><b>Left, Right; with Shift; Home, End</b></td></tr>
<tr><td>Trade-off: hear the point, or stop; compare it; select all</td><td><b>Space; A, B; Ctrl+A</b></td></tr>
<tr><td>Trade-off: zoom in, out, show everything; move the section</td>
<td><b>+, −, 0; Ctrl with the arrow keys</b></td></tr>
<tr><td>Views: from point to point, from panel to panel</td><td><b>Arrow keys; Page Up, Page Down</b></td></tr>
<tr><td>Decoding, Demasking, Layers, Roofline, Strategy: copy as text</td><td><b>Ctrl+C</b></td></tr>
<tr><td>Listen: hear A, hear B, switch</td><td><b>A, B, X</b></td></tr>
<tr><td>Listen: play or pause</td><td><b>Space</b></td></tr>
<tr><td>Listen: back and forth; by smaller steps</td><td><b>Left, Right; with Shift</b></td></tr>
<tr><td>Listen: to the start</td><td><b>Home</b></td></tr>
<tr><td>Listen: loop on or off; its start, its end here</td><td><b>L; [, ]</b></td></tr>
<tr><td>Listen: zoom in, out, show all</td><td><b>+, −, 0</b></td></tr>
<tr><td>Lab: hear A, B, X; say what X is</td><td><b>A, B, X; 1, 2</b></td></tr>
<tr><td>Lab: hear the first, the second of a pair; answer</td><td><b>A, B; 1 to 7</b></td></tr>
<tr><td>Lab: hear the reference, a sound, the one beside; rate it; next page</td>
<td><b>R, 1 to 0, Left, Right; Up, Down, Page Up, Page Down; Return</b></td></tr>
<tr><td>Lab, before a test: hear the noise, the tone; the volume is right</td><td><b>N, T; Return</b></td></tr>
<tr><td>Lab: play or pause; loop, its start, its end; to the start</td><td><b>Space; L, [, ]; Backspace</b></td></tr>
<tr><td>Takes: compare as A, as B; star, run again, save as WAV, show file, delete</td>
<td><b>A, B; S, R, W, V, Del</b></td></tr>
<tr><td>Everywhere: next and previous control</td><td><b>Tab, Shift+Tab</b></td></tr>
</table>"""

_FIRST_STEPS = """
<h3>What Paretone does</h3>
<p>Diffusion text-to-speech computes much that hardly changes from step to step. DiTReducio finds out what can be
skipped, and Paretone lets you hear what that costs.</p>
<ol>
<li><b>Baseline</b>: speak a sentence with every module computed.</li>
<li><b>Calibrate</b>: each layer and step is tried; what stays under the threshold δ is skipped from then on.</li>
<li><b>Accelerated</b>: speak the same sentence, from the same noise, skipping what the strategy table says.</li>
<li><b>Compare</b>: play, and switch between A and B, in the middle of a word where both have the same timing; the
loudness is matched.</li>
<li><b>Export</b>: the profile holds the setting, the table and the evidence, and runs from the command line.</li>
</ol>
<p>Speech language models decode token by token: there, engage SSD, which drafts several tokens for each pass of the
model, or SPADE, which leaves out layers. Decoding shows what became of every token, Layers which layers matter.</p>
<p>Masked models fill in a canvas of codes: Demasking shows in which order, and plays it as it stood behind any step.
</p>
<p>Roofline measures what each component takes against the least that this machine needs for it, without techniques and
with them: it tells whether arithmetic, memory or starting kernels is what there is to save.</p>
<p>Trade-off shows every take and every setting of a study as a point, speed against quality, with the front: click to
hear, walk along it, compare any two, and take the one to ship into Setup.</p>
<p>Drag δ in the Threshold panel: the table follows at once. A table that is only predicted says so and offers the
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
