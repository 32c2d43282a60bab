"""Which takes are in which cells of the grid, and how far they are from the reference."""

from dataclasses import replace

import numpy as np
import pytest

from paretone.errors import SettingError
from paretone.measure.metrics import Metric, metric
from paretone.setting.knobs import Values
from paretone.setting.library import TakeSummary
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Measurements
from paretone_app.features.take_grid.grid import (
    Asked,
    Dimension,
    Figures,
    TakeGrid,
    dimensions,
    in_order,
    over_sentences,
    take_grid,
)

PLAIN = Setting("f5-mini", Values({"steps": 12, "guidance": 0.7}), seed=3)
RTF = metric("real_time_factor")


def used(steps: int | None = None, threshold: float | None = None, setting: Setting = PLAIN, **more: object) -> Setting:
    if steps is not None:
        setting = setting.with_technique(UsedTechnique("steps", Values({"steps": steps})))
    if threshold is not None:
        knobs = Values({"threshold": threshold, **more})
        setting = setting.with_technique(UsedTechnique("ditreducio", knobs, f"table of {threshold}"))
    return setting


def take(name: str, setting: Setting, seconds: float = 1.0, text: str = "One.", voice: str = "anna") -> TakeSummary:
    more = {"measurements": Measurements(seconds=seconds, audio_seconds=2.0, device="cpu"), "machine": "here"}
    return TakeSummary(name, f"2026-11-26 {name}", text, voice, setting, 24000, 48000, **more)


TAKES = (
    take("plain", PLAIN, 2.0),
    take("fewer", used(7), 1.0),
    take("fewest", used(5), 0.8),
    take("skipped", used(threshold=0.1), 1.6),
    take("both", used(7, 0.1), 0.7),
    take("other text", used(7), 1.0, text="Two."),
    take("other plain", PLAIN, 2.2, text="Two."),
    take("other voice", used(7), 1.0, voice="bella"),
    take("other seed", replace(used(7), seed=4)),
)


def known(name: str, takes: tuple[TakeSummary, ...] = TAKES) -> Dimension:
    return next(one for one in dimensions([Asked.of(one) for one in takes], "f5-mini") if one.name == name)


def what(rows: str, columns: str, takes: tuple[TakeSummary, ...] = TAKES, figure: Metric = RTF) -> Figures:
    return known(rows, takes), known(columns, takes), figure


def grid(rows: str, columns: str, reference: TakeSummary = TAKES[0], **more: object) -> TakeGrid:
    return take_grid(TAKES, reference, what(rows, columns), **more)


def names(found: TakeGrid) -> list[list[str]]:
    return [["" if one is None else one.id for one in line] for line in found.takes]


def test_two_knobs_around_a_take_in_any_cell() -> None:
    found = grid("ditreducio.threshold", "steps.steps")
    assert found.row_values == (None, 0.1) and found.column_values == (None, 5, 7)
    assert names(found) == [["plain", "fewest", "fewer"], ["skipped", "", "both"]]
    assert found.reference == (0, 0) and found.empty == ((1, 1),)
    np.testing.assert_allclose(found.differences, [[0, -0.6, -0.5], [-0.2, np.nan, -0.65]])
    assert found.share(1, 2) == pytest.approx(1.0), "the largest difference, to the better"
    assert found.share(1, 1) == found.share(0, 0) == 0.0
    wanted = found.asked[1][1].setting
    assert wanted == used(5, setting=PLAIN.with_technique(UsedTechnique("ditreducio", Values({"threshold": 0.1}))))
    assert found.sentences == ("One.", "Two.")
    found = grid("ditreducio.threshold", "steps.steps", TAKES[4])
    assert found.reference == (1, 2) and found.differences[0, 0] == pytest.approx(0.65)
    assert found.share(0, 0) == pytest.approx(-1.0), "worse"
    assert "0.650 more than the reference, worse" in found.cell_in_words(0, 0)
    assert found.cell_in_words(1, 2).endswith("0.350: the reference.")
    assert "press M" in found.cell_in_words(1, 1)
    assert found.place_in_words(0, 1).endswith("off, Step pruning: steps: 5")


def test_figures_are_means_over_sentences_each_against_its_own_reference() -> None:
    found = over_sentences(TAKES, TAKES[0], what("ditreducio.threshold", "steps.steps"))
    assert names(found) == [["plain", "fewest", "fewer"], ["skipped", "", "both"]], "of the reference's sentence"
    assert found.values[0, 0] == pytest.approx((1.0 + 1.1) / 2)
    np.testing.assert_allclose(found.differences[0], [0.0, -0.6, (-0.5 - 0.6) / 2])
    assert found.numbers.tolist() == [[2, 1, 2], [1, 0, 1]]
    assert "(mean of 2 sentences), 0.550 less than the reference, better." in found.cell_in_words(0, 2)
    assert not over_sentences(TAKES, TAKES[0], what("text", "steps.steps")).others, "sentences are a dimension"


def test_means_are_of_the_same_cells_however_takes_come() -> None:
    said = [("One.", "bob", 10.0), ("One.", "ann", 1.0), ("Two.", "ann", 1.0), ("Two.", "bob", 10.0)]
    takes = tuple(take(f"{text} {voice}", PLAIN, seconds, text, voice) for text, voice, seconds in said)
    found = over_sentences(takes, takes[0], what("voice", "steps.steps", TAKES))
    assert found.row_values == ("bob", "ann")
    np.testing.assert_allclose(found.values[:, 0], [5.0, 0.5])
    np.testing.assert_allclose(found.differences[:, 0], [0.0, -4.5])
    only = (*takes, take("only there", used(7), 2.0, "Two.", "bob"))
    with_fewer = over_sentences(only, takes[0], what("voice", "steps.steps", TAKES))
    assert with_fewer.takes[0][1] is only[-1] and not np.isnan(with_fewer.differences[0, 1]), "of another sentence"


def test_a_technique_is_not_on_in_one_knob_and_off_in_another() -> None:
    takes = (
        take("plain", PLAIN),
        take("one", used(threshold=0.1, metric="cosine")),
        take("two", used(threshold=0.3, metric="cosine")),
    )
    two = known("ditreducio.threshold", takes), known("ditreducio.metric", takes), RTF
    found = take_grid(takes, takes[0], two)
    assert found.row_values == (None, 0.1, 0.3) and found.column_values == (None, "cosine")
    assert found.empty == () and found.asked[0][1] is None and found.asked[1][0] is None
    assert "There is no such setting" in found.cell_in_words(0, 1)


def test_sentences_voices_seeds_and_models_are_dimensions_too_and_values_that_nobody_has_spoken() -> None:
    found = grid("text", "steps.steps")
    assert names(found) == [["plain", "fewest", "fewer"], ["other plain", "", "other text"]]
    assert found.sentences == (), "there is nothing to page through"
    assert names(grid("voice", "seed", TAKES[1])) == [["fewer", "other seed"], ["other voice", ""]]
    wanted = grid("voice", "seed", TAKES[1]).asked[1][1]
    assert (wanted.voice, wanted.setting.seed, wanted.setting.technique("steps").knobs["steps"]) == ("bella", 4, 7)
    other = take("other model", Setting("megatts3-mini", Values({"steps": 16}), seed=3), voice="megatts3-mini/anna")
    takes = (*TAKES, other)
    found = take_grid(takes, TAKES[0], what("model", "steps.steps", takes))
    assert names(found)[1] == ["other model", "", ""] and found.rows.in_words("megatts3-mini") == "MegaTTS 3 mini"
    found = grid("ditreducio.threshold", "steps.steps", more=((0.3,), known("steps.steps").read("4 off")))
    assert found.row_values == (None, 0.1, 0.3) and found.column_values == (None, 4, 5, 7)
    assert len(found.empty) == 3 * 4 - 5


def test_of_several_takes_the_one_most_like_the_reference_and_the_newest_counts() -> None:
    older = take("older", PLAIN, 9.0)
    assert names(take_grid((*TAKES, older), TAKES[1], what("text", "steps.steps")))[0][0] == "plain"
    assert names(take_grid((*TAKES, older), older, what("text", "steps.steps")))[0][0] == "older"
    unusual = take("unusual", used(threshold=0.2, objective="end"))
    usual = [take(f"usual {one}", used(threshold=one)) for one in (0.2, 0.3)]
    takes = (unusual, *usual, *TAKES)
    around = take_grid(takes, unusual, what("ditreducio.threshold", "text", takes))
    assert around.takes[around.row_values.index(0.2)][0] is unusual
    plain = take_grid(takes, TAKES[0], what("ditreducio.threshold", "text", takes))
    assert plain.takes[plain.row_values.index(0.2)][0] is usual[0], "as most are"


def test_times_of_another_machine_are_not_compared() -> None:
    found = take_grid((TAKES[0], replace(TAKES[1], machine="there")), TAKES[0], what("text", "steps.steps"))
    assert np.isnan(found.values[0, 1]) and "another machine" in found.cell_in_words(0, 1)
    judged = take_grid(TAKES, TAKES[0], what("text", "steps.steps", figure=metric("naturalness")))
    assert "was not judged" in judged.cell_in_words(0, 1) and judged.largest == 0.0


def test_values_are_read_as_they_are_typed_or_refused_in_a_sentence() -> None:
    assert known("ditreducio.threshold").read("0,1; 0.2 off") == (0.1, 0.2, None)
    assert known("text").read("One sentence. | And another one. |") == ("One sentence.", "And another one.")
    assert known("seed").read("1 2 2") == (1, 2)
    anna = {"anna": "anna"}
    assert known("voice").read("Anna; anna", anna) == ("anna",)
    for name, words, says in (
        ("steps.steps", "4 many", "must be a number, not “many”"),
        ("steps.steps", "4000", "must lie between"),
        ("seed", "-1", "A seed is a whole number"),
        ("voice", "Nobody", "There is no voice “Nobody”; there are Anna"),
    ):
        with pytest.raises(SettingError, match=says):
            known(name).read(words, anna)
    other = known("model").put(Asked.of(TAKES[0]), "megatts3-mini").setting
    assert "intelligibility" in other.options and "guidance" not in other.options, "its own options"
    assert in_order((7, None, 5, 7)) == (None, 5, 7) and in_order(("b", "a")) == ("b", "a")


def test_knobs_that_differ_come_first() -> None:
    found = [one.name for one in dimensions([Asked.of(one) for one in TAKES], "f5-mini")]
    assert set(found[:2]) == {"steps.steps", "ditreducio.threshold"}
    assert found[2:6] == ["text", "voice", "seed", "model"]
    assert "option:guidance" in found and "precision.precision" in found and len(set(found)) == len(found)
    assert [one.name for one in dimensions([], "a model that is gone")] == ["text", "voice", "seed", "model"]
