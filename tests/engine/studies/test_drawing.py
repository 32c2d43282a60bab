"""Figures of reports."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from engine.studies.drawing import Point, _Scale, scatter

SVG = "{http://www.w3.org/2000/svg}"


def point(x: float, y: float, group: str = "one", **more: object) -> Point:
    return Point(x, y, (x - 0.1, x + 0.1), (y - 0.1, y + 0.1), group, f"{group} & <{x}>", **more)


def test_every_point_is_there_with_its_label() -> None:
    root = ElementTree.fromstring(scatter([point(1, 2, mark="1", on_front=True), point(3, 4, "two")], "x & y", "<z>"))
    assert [one.text for one in root.iter(f"{SVG}title")] == ["one & <1>", "two & <3>"]
    texts = [one.text for one in root.iter(f"{SVG}text")]
    assert {"x & y", "<z>", "1", "one", "two"} <= set(texts)
    assert scatter([], "x", "y") == ""


def test_groups_differ_in_colour_or_shape() -> None:
    picture = scatter([point(number, number, f"group {number}") for number in range(30)], "x", "y")
    looks = set()
    for group in ElementTree.fromstring(picture).iter(f"{SVG}g"):
        shape = group[2]
        corners = re.sub(r"[\d.]+", "", shape.get("points", ""))
        sides = len(shape.get("points", "").split())
        width = 0.0
        if sides == 4:
            xs = [float(pair.split(",")[0]) for pair in shape.get("points").split()]
            width = round(max(xs) - min(xs))
        looks.add((shape.tag, shape.get("stroke"), sides, width, corners))
    assert len(looks) == 30


def test_scales_have_round_ticks_and_nothing_negative_without_need() -> None:
    assert _Scale([0.0, 1.0], 0, 100).ticks == [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]
    assert min(_Scale([0.0, 0.0], 0, 1).ticks) == 0.0
    assert min(_Scale([-1.0, 1.0], 0, 1).ticks) == -1.0
    scale = _Scale([2.0, 4.0], 10, 20)
    assert 10 < scale(2.0) < scale(3.0) < scale(4.0) < 20
