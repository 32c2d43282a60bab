from __future__ import annotations

import re

import pytest
from PySide6.QtGui import QColor, QIcon, QImage, QPalette

from paretone.paths import resource
from paretone_app.shell.colours import DARK, LIGHT, ON_GROUND
from paretone_app.shell.theme import icon, icon_names, palette, pixmap


def covered(image: QImage) -> set[tuple[int, int, int]]:
    """The colours of the fully opaque pixels."""
    pixels = (image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height()))
    return {(one.red(), one.green(), one.blue()) for one in pixels if one.alpha() == 255}


@pytest.mark.parametrize("name", icon_names())
def test_every_icon_draws_something_in_the_colour_asked_for(qapp, name: str) -> None:
    image = pixmap(name, "#12c830", 48).toImage()
    assert covered(image) == {(0x12, 0xC8, 0x30)}
    inside = [(x, y) for x in range(48) for y in range(48) if image.pixelColor(x, y).alpha()]
    assert min(map(min, inside)) >= 2
    assert max(map(max, inside)) <= 45


@pytest.mark.parametrize("name", icon_names())
def test_drawings_have_no_colour_of_their_own(name: str) -> None:
    svg = resource("icons", f"{name}.svg").read_text(encoding="utf-8")
    assert set(re.findall(r'(?:fill|stroke)="([^"]+)"', svg)) <= {"none", "currentColor"}


@pytest.mark.parametrize("colours", [LIGHT, DARK])
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


def test_an_unknown_icon_is_an_error(qapp) -> None:
    with pytest.raises(FileNotFoundError):
        icon("no such icon")
