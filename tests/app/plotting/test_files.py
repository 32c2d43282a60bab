from __future__ import annotations

from xml.etree import ElementTree

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QPainter

from paretone_app.plotting.files import comma_separated, svg


@pytest.mark.usefixtures("qapp")
def test_control_characters_in_labels_leave_a_drawing_that_can_be_read() -> None:
    name = "a\x01b\x1b[31m\x08<c>"
    drawn = svg(QSize(99, 99), lambda painter: QPainter.drawText(painter, 5, 50, name), name, name)
    tree = ElementTree.fromstring(drawn)
    assert tree[0].text == "ab[31m<c>"
    assert "31m" in "".join(tree.itertext())


def test_a_name_that_is_no_text_is_written_as_a_table() -> None:
    assert comma_separated("a\ud800\tb") == b"a?,b\r\n"
