"""Colours can be read by everyone: WCAG 2.2 AA."""

from __future__ import annotations

import re
from itertools import product

import pytest
from PySide6.QtGui import QColor, QIcon, QImage, QPalette
from PySide6.QtWidgets import QApplication, QDialogButtonBox, QLabel, QProgressBar, QProxyStyle, QStyle
from pytestqt.qtbot import QtBot

from paretone.paths import resource
from paretone_app.shell.colours import DARK, LIGHT, ON_GROUND, Colours
from paretone_app.shell.theme import EMBLEM, Scheme, Theme, icon, palette, pixmap, set_look, style_sheet
from tests.app.conftest import on_screen
from tests.app.contrast import contrast

BOTH = pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])


@BOTH
def test_text_and_meaning_have_contrast(colours: Colours) -> None:
    meanings = product(("accent", "good", "warning", "danger", "baseline", "accelerated"), ("window", "base"))
    for ink, ground in (*product(("text", "muted"), ("window", "base", "raised")), *meanings):
        assert contrast(getattr(colours, ink), getattr(colours, ground)) >= 4.5, (ink, ground)
    assert contrast(colours.on_accent, colours.accent) >= 4.5
    assert contrast(colours.disabled, colours.window) >= 3
    disabled = palette(colours).color(QPalette.ColorGroup.Disabled, QPalette.ColorRole.Text)
    assert contrast(disabled.name(), colours.base) >= 3


@BOTH
def test_figures_on_progress_have_contrast(colours: Colours, qtbot: QtBot) -> None:
    bar = QProgressBar(value=100, format="")
    bar.setStyleSheet(style_sheet(colours))
    qtbot.addWidget(bar)
    bar.resize(200, 24)
    done = bar.grab().toImage().pixelColor(100, 12).name()
    assert contrast(colours.text, done) >= 4.5
    assert contrast(done, colours.base) >= 2, "what is done stands out from what is not"


def test_the_scheme_changes_palette_and_plots(theme: Theme, qapp: QApplication) -> None:
    changes = []
    theme.changed.connect(lambda: changes.append(theme.colours))
    for scheme, colours in ((Scheme.DARK, DARK), (Scheme.LIGHT, LIGHT)):
        theme.apply(scheme)
        assert theme.dark is (scheme is Scheme.DARK)
        assert qapp.palette().color(QPalette.ColorRole.Window) == QColor(colours.window)
    assert changes == [DARK, LIGHT]


def test_a_look_can_change_after_it_was_shown(theme: Theme, qtbot) -> None:
    theme.apply(Scheme.LIGHT)
    label = on_screen(QLabel("a sentence"), qtbot)
    for look in ("warning", "good"):
        set_look(label, look)
        assert label.palette().color(QPalette.ColorRole.WindowText) == QColor(getattr(LIGHT, look))


class Drawn(QProxyStyle):
    """A desktop whose dialogs have drawings on their buttons."""

    def styleHint(self, hint, *rest) -> int:
        return 1 if hint is QStyle.StyleHint.SH_DialogButtonBox_ButtonsHaveIcons else super().styleHint(hint, *rest)


def test_buttons_of_dialogs_have_no_drawings_of_the_desktop(theme: Theme, qtbot: QtBot) -> None:
    """Those keep their colours in both schemes: a cross in black on dark ground, a green tick at Delete."""
    style, box = Drawn("Fusion"), QDialogButtonBox()
    qtbot.addWidget(box)
    box.setStyle(style)
    theme.apply(Scheme.DARK)
    box.setStandardButtons(QDialogButtonBox.StandardButton.Yes | QDialogButtonBox.StandardButton.Close)
    assert box.buttons() and all(one.icon().isNull() for one in box.buttons())
    theme.apply(Scheme.LIGHT)


def covered(image: QImage) -> set[tuple[int, int, int]]:
    """The colours of the fully opaque pixels."""
    pixels = (image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height()))
    return {(one.red(), one.green(), one.blue()) for one in pixels if one.alpha() == 255}


@pytest.mark.parametrize(
    "name", sorted(one.stem for one in resource("icons").glob("*.svg") if one.stem != EMBLEM), ids=str
)
def test_every_icon_draws_something_in_the_colour_asked_for(qapp, name: str) -> None:
    svg = resource("icons", f"{name}.svg").read_text(encoding="utf-8")
    assert set(re.findall(r'(?:fill|stroke)="([^"]+)"', svg)) <= {"none", "currentColor"}
    image = pixmap(name, "#12c830", 48).toImage()
    assert covered(image) == {(0x12, 0xC8, 0x30)}
    inside = [(x, y) for x in range(48) for y in range(48) if image.pixelColor(x, y).alpha()]
    assert min(map(min, inside)) >= 2 and max(map(max, inside)) <= 45


@BOTH
def test_icons_take_the_colours_of_the_palette(qapp, colours) -> None:
    made = palette(colours)
    role, group = QPalette.ColorRole, QPalette.ColorGroup
    for mode, state, expected in (
        (QIcon.Mode.Normal, QIcon.State.Off, made.color(group.Active, role.ButtonText)),
        (QIcon.Mode.Normal, QIcon.State.On, QColor(ON_GROUND)),
        (QIcon.Mode.Disabled, QIcon.State.Off, made.color(group.Disabled, role.ButtonText)),
    ):
        image = icon("stop", made).pixmap(32, mode, state).toImage()
        assert covered(image) == {(expected.red(), expected.green(), expected.blue())}
