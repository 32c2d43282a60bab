"""What techniques are drawn as: by their identity alone."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import pytest

from paretone.figures.glyphs import (
    DERIVED_SHAPES,
    HUES,
    MORE_DARK,
    MORE_LIGHT,
    SERIES_DARK,
    SERIES_LIGHT,
    SERIES_ON_ANY,
    SHAPES,
    Glyphs,
    Mark,
    corners,
    derived_mark,
)
from paretone.techniques import registry, techniques
from paretone.techniques.registry import in_order, technique_mark


def test_every_technique_of_ours_declares_a_mark_and_no_two_the_same() -> None:
    marks = [one.mark for one in techniques()]
    assert len(marks) >= 25 and None not in marks
    assert len(set(marks)) == len(marks)
    assert {one.hue for one in marks} == set(HUES) and {one.shape for one in marks} <= set(SHAPES)


def test_a_mark_that_follows_from_a_name_never_looks_like_a_declared_one() -> None:
    assert not set(SHAPES) & set(DERIVED_SHAPES) and all(corners(one) for one in DERIVED_SHAPES)
    derived = {derived_mark(f"plug_in_{number}") for number in range(500)}
    assert derived == set(itertools.starmap(Mark, itertools.product(HUES, DERIVED_SHAPES))), "all are used"
    assert derived.isdisjoint(one.mark for one in techniques())


def test_marks_are_the_same_in_every_process() -> None:
    code = (
        "from paretone.techniques.registry import technique_mark as m\n"
        "print(m('adams_bashforth'), m('gone'), m('steps'))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout.strip()
        for seed in ("0", "1")
    }
    assert printed == {" ".join(map(str, map(technique_mark, ("adams_bashforth", "gone", "steps"))))}
    assert technique_mark("adams_bashforth") == Mark("blue", "right"), "in every release"


def test_absence_of_other_techniques_changes_no_mark_and_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [one.name for one in techniques()]
    marks = {name: technique_mark(name) for name in names}
    there = registry.registry()
    for name in names:
        alone = registry.Registry(tuple(one for one in there.techniques if one.name == name), ())
        monkeypatch.setattr(registry, "registry", lambda found=alone: found)
        assert technique_mark(name) == marks[name]
    monkeypatch.undo()
    for first, second in itertools.combinations(names, 2):
        pair = in_order((second, first))
        for third in names:
            assert [one for one in in_order((third, second, first)) if one in pair] == list(pair) or third in pair


def test_palettes_have_a_colour_of_each_hue() -> None:
    for palette in ((*SERIES_LIGHT, *MORE_LIGHT), (*SERIES_DARK, *MORE_DARK), SERIES_ON_ANY):
        glyphs = Glyphs(technique_mark, palette, "#000000")
        assert len(set(palette)) == len(HUES)
        for one in techniques():
            drawn = glyphs.glyph((one.name, "steps"))
            assert drawn.shape == one.mark.shape
            assert drawn.colours == (palette[HUES.index(one.mark.hue)], palette[HUES.index("green")])
