"""In what two takes differ, as the window tells it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from app.comparison import differences
from engine.setting import Engaged
from tests.app.desk import Desk


def test_differences_name_text_and_voice_before_the_setting(tmp_path: Path, qapp) -> None:
    desk = Desk(tmp_path)
    one = desk.take(desk.state.baseline_setting)
    other = replace(
        desk.take(one.setting.with_technique(Engaged("ditreducio", desk.state.knobs("ditreducio"))), text="Another."),
        voice="rms",
    )
    found = differences(one, other)
    assert [(each.what, each.left, each.right) for each in found[:2]] == [
        ("text", "A text.", "Another."),
        ("voice", "slt", "rms"),
    ]
    assert [each.technique for each in found[:2]] == [False, False]
    assert found[2:]
    assert all(each.technique for each in found[2:])
    assert differences(one, one) == ()
