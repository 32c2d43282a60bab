"""Scatter plots of reports, and their axes."""

import itertools
import math
from xml.etree import ElementTree

import numpy as np
import pytest

from paretone.figures import svg
from paretone.figures.glyphs import DERIVED_SHAPES, SERIES_ON_ANY, SHAPES, Glyphs, corners, marks_in_turn, part
from paretone.figures.scatter import Dimension, Scale, Scatter
from paretone.measure.metrics import HIGHER, LOWER

SVG = "{http://www.w3.org/2000/svg}"


def of(names: list[tuple[str, ...]], values: list[tuple[float, float]], **more: object) -> Scatter:
    """Points that go by ``names`` at ``values``, with intervals of 0.1 on either side."""
    known = tuple(dict.fromkeys(name for each in names for name in each))
    glyphs = Glyphs(marks_in_turn(known), SERIES_ON_ANY, "currentColor")
    return Scatter(
        Dimension("x & y"),
        Dimension("<z>"),
        *(np.array(values, float).T.reshape(2, -1, 1) + np.array([0.0, -0.1, 0.1])),
        tuple(glyphs.glyph(own) for own in names),
        more.pop("labels", ("",) * len(names)),
        tuple(f"{'+'.join(own)} & <{x}>" for own, (x, _) in zip(names, values, strict=True)),
        legend=tuple((glyphs.glyph((name,)), name) for name in known),
        **more,
    )


def test_every_point_is_there_with_its_label() -> None:
    root = ElementTree.fromstring(svg.draw(of([("one",), ("two",)], [(1, 2), (3, 4)], labels=("1", ""))))
    assert [one.text for one in root.iter(f"{SVG}title")] == ["one & <1>", "two & <3>"]
    assert {"x & y", "<z>", "1", "one", "two"} <= {one.text for one in root.iter(f"{SVG}text")}
    assert svg.draw(of([], [])) == ""


def test_points_that_other_processes_displaced_have_a_dashed_ring() -> None:
    drawn = svg.draw(of([("one",), ("two",)], [(1, 2), (3, 4)], doubtful=(1,)))
    points = [one for one in ElementTree.fromstring(drawn).iter(f"{SVG}g") if one.find(f"{SVG}title") is not None]
    rings = [[one.get("stroke-dasharray") for one in point.iter(f"{SVG}circle")].count("3 2") for point in points]
    assert rings == [0, 1]


def test_groups_differ_in_colour_or_shape() -> None:
    shown = of([(f"group {number}",) for number in range(42)], [(number, number) for number in range(42)])
    assert len({(one.colours, one.shape) for one in shown.glyphs}) == 42
    looks = set()
    for point in ElementTree.fromstring(svg.draw(shown)).iter(f"{SVG}g"):
        if point.find(f"{SVG}title") is None:
            continue
        shape = point[2]
        around = [tuple(map(float, pair.split(","))) for pair in shape.get("points", "").split()]
        outline = tuple((round(x - around[0][0]), round(y - around[0][1])) for x, y in around)
        looks.add((shape.tag, shape.get("stroke"), outline))
    assert len(looks) == 42, "as they are drawn, too"


@pytest.mark.parametrize("shape", [*SHAPES, *DERIVED_SHAPES])
def test_slices_make_up_the_whole(shape: str) -> None:
    def area(around: tuple[tuple[float, float], ...]) -> float:
        x, y = np.array(around).T
        return abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1))) / 2

    whole = area(corners(shape)) if corners(shape) else np.pi
    assert sum(area(part(shape, number, 3)) for number in range(3)) == pytest.approx(whole, rel=0.01)


def test_the_better_end_of_an_axis_is_marked_and_the_front_is_drawn_in_steps() -> None:
    shown = Scatter(
        Dimension("speed", better=HIGHER),
        Dimension("error", better=LOWER),
        *np.repeat(np.array([[1.0, 2.0], [0.1, 0.3]])[..., None], 3, axis=2),
        (Glyphs(marks_in_turn(()), SERIES_ON_ANY, "red").glyph(()),) * 2,
        ("1", "2"),
        ("one", "two"),
        front=(0, 1),
    )
    root = ElementTree.fromstring(svg.draw(shown))
    assert {"better →", "← better"} <= {one.text for one in root.iter(f"{SVG}text")}
    across, up = shown.scales()
    edge, ground = shown.edge(across, up)
    assert edge == [(across.low, 0.1), (1.0, 0.1), (1.0, 0.3), (2.0, 0.3), (2.0, up.high)]
    assert ground[-1] == (across.low, up.high), "what is worse in both"


def test_scales_have_round_ticks_and_nothing_negative_without_need() -> None:
    assert Scale.of(np.array([0.0, 1.0])).ticks(6) == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert min(Scale.of(np.array([0.0, 0.0])).ticks(6)) == 0.0
    assert min(Scale.of(np.array([-1.0, 1.0])).ticks(6)) == -1.0
    two, three, four = Scale.of(np.array([2.0, 4.0])).share(np.array([2.0, 3.0, 4.0]))
    assert 0 < two < three < four < 1


def test_control_characters_in_labels_leave_a_page_that_can_be_read() -> None:
    name = "a\x00b\x1b[31m\x08\ufffe\ud800c"
    texts = "".join(ElementTree.fromstring(svg.draw(of([(name,)], [(1.0, 2.0)], labels=(name,)))).itertext())
    assert "a�b�[31m���c" in texts


ODD = (0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 5e-324, 1e-320, 1e308, -1e308, 1 + 1e-15, 1e17, 1e17 + 16)


@pytest.mark.parametrize("logarithmic", [False, True])
def test_whatever_its_ends_an_axis_can_be_drawn(logarithmic: bool) -> None:
    for low, high in itertools.product(ODD, ODD):
        scale = Scale(low, high, logarithmic)
        assert np.isfinite(scale.ends).all()
        for most in (1, 2, 7):
            assert all(map(math.isfinite, scale.ticks(most)))
        assert math.isfinite(scale.at(0.5))


def test_an_axis_that_is_upside_down_has_the_same_numbers_and_sections() -> None:
    whole, down = Scale(0.0, 10.0), Scale(10.0, 0.0)
    assert down.ticks(5) == whole.ticks(5)
    assert down.zoomed(0.5, 0.25, down) == whole.zoomed(0.5, 0.75, whole).flipped
    section = down.zoomed(0.5, 0.5, down)
    assert section == Scale(7.5, 2.5)
    assert section.moved(0.2, down) == Scale(6.5, 1.5), "further on is towards its end"
    assert section.moved(9.0, down) == Scale(5.0, 0.0) and section.zoomed(9.0, 0.5, down) == down
