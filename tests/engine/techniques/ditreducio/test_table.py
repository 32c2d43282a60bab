"""Strategy tables, and records of their calibration."""

import copy
import json
import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from paretone.errors import ProfileError
from paretone.models.base import OperationCounts
from paretone.sampling.actions import SkipAction
from paretone.setting.knobs import Values
from paretone.techniques.ditreducio.record import CALIBRATION, PRE_CALIBRATION, CalibrationRecord, Sentence, Trial
from paretone.techniques.ditreducio.table import StrategyTable
from tests.engine.techniques.ditreducio.observing import LAYERS, STEPS, calibrate, compatibility

N, T, B = SkipAction.NONE, SkipAction.TS, SkipAction.BS
ROWS = ((N, N, T, T, B, B), (N, B, T, N, T, T), (N, N, N, N, N, N))
THRESHOLDS = tuple(float(one) for one in np.geomspace(0.01, 1.0, 60))


@pytest.fixture
def table() -> StrategyTable:
    return StrategyTable(compatibility(), ROWS, "both", "calibrated at threshold 0.1")


def test_counts_and_columns(table: StrategyTable) -> None:
    assert [table.count(action) for action in SkipAction] == [10, 5, 3]
    assert table.skipped_share == pytest.approx(8 / 18) and table.at(2) == (T, T, N)


def test_a_changed_table_differs_in_one_cell_and_says_that_it_was_edited_once(table: StrategyTable) -> None:
    once = table.changed(2, 3, T)
    twice = once.changed(0, 1, B)
    assert table.actions == ROWS and np.argwhere(np.array(once.actions) != np.array(ROWS)).tolist() == [[2, 3]]
    assert once.actions[2][3] is T and once.origin == twice.origin == "calibrated at threshold 0.1, edited by hand"
    assert StrategyTable(compatibility(), ROWS).changed(0, 1, T).origin == "edited by hand"


def test_a_table_edited_back_to_what_it_was_is_not_edited() -> None:
    table = StrategyTable(compatibility(), ROWS, origin="calibrated at threshold 0.1")
    edited, before = table, ROWS[0][1]
    for action in [one for one in SkipAction if one is not before] * 3:
        edited = edited.changed(0, 1, action)
        assert edited.by_hand and edited.fingerprint != table.fingerprint
        edited = edited.changed(0, 1, before)
        assert edited is table and not edited.by_hand
    twice = table.changed(0, 1, T if before is not T else B).changed(1, 1, T if ROWS[1][1] is not T else B)
    assert twice.changed(0, 1, before).by_hand and twice.changed(0, 1, before).changed(1, 1, ROWS[1][1]) is table
    read = StrategyTable.from_json(json.loads(json.dumps(twice.to_json())))
    assert read == twice and read.edited is None


@pytest.mark.parametrize(("branches", "branch_skip"), [(1, "both"), (3, "attention")])
def test_the_ops_ratio_adds_up_cell_by_cell(branches: int, branch_skip: str) -> None:
    operations = OperationCounts(3.0, 5.0, 7.0, 3, branches)
    table = StrategyTable(compatibility(), ROWS, branch_skip)
    done = 0.0
    for step in range(6):
        for branch in range(branches):
            done += operations.fixed
            for layer in range(3):
                action = ROWS[layer][step]
                attention = action is N or (action is B and branch == 0)
                done += operations.attention * attention
                done += operations.feed_forward * (attention or (action is B and branch_skip == "attention"))
    everything = 6 * branches * (3 * (3.0 + 5.0) + 7.0)
    assert operations.evaluation * 6 == everything and table.ops_ratio(operations) == pytest.approx(done / everything)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("model", "f5-base", "model 'f5-mini', but 'f5-base' is in use"),
        ("fingerprint", "f" * 64, "checkpoint '0123456789ab', but 'ffffffffffff' is in use"),
        ("spacing", "epss", "step grid 'uniform', but 'epss'"),
        ("guidance", 0.0, "guidance strength 2.0, but 0.0"),
    ],
)
def test_a_mismatch_names_what_differs(field: str, value: object, words: str) -> None:
    assert compatibility().mismatch(compatibility()) is None
    assert words in compatibility().mismatch(compatibility(**{field: value}))


def test_fingerprints_follow_what_a_table_does_and_not_where_it_came_from(table: StrategyTable) -> None:
    assert table.fingerprint == StrategyTable(compatibility(), ROWS, "both", "imported").fingerprint
    others = StrategyTable(compatibility(), ROWS, "attention"), StrategyTable(compatibility(guidance=1.0), ROWS, "both")
    assert len({one.fingerprint for one in (table, table.changed(0, 1, T), *others)}) == 4


def test_own_json_is_read_also_with_whole_numbers_and_without_origin(table: StrategyTable) -> None:
    again = StrategyTable.from_json(json.loads(json.dumps(table.to_json())))
    assert again == table and all(isinstance(action, SkipAction) for row in again.actions for action in row)
    data = table.to_json()
    data["belonging"]["sampling"]["guidance"] = 2
    again = StrategyTable.from_json(data)
    assert again == table and again.fingerprint == table.fingerprint
    data = table.to_json()
    del data["origin"]
    assert StrategyTable.from_json(data).origin == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data.pop("actions"), "table lacks the field 'actions'"),
        (lambda data: data.update(colour=1), "unknown field 'colour'"),
        (lambda data: data.update(branch_skip="all"), "branch_skip must be one of both, attention"),
        (lambda data: data["actions"].__setitem__(0, "NONE"), r"actions must be a list \(layers\) of lists \(steps\)"),
        (lambda data: data["actions"][1].__setitem__(3, []), r"actions\[1\]\[3\] must be NONE, TS or BS, not \[\]"),
        (lambda data: data["actions"][1].__setitem__(0, "TS"), "skips layer 2 at step 1"),
        (lambda data: data.update(actions=[]), "has no layers"),
        (lambda data: data.update(belonging=[1]), "belonging must be an object, not list"),
        (lambda data: data["belonging"]["sampling"].update(steps=True), "sampling.steps must be of type int, not True"),
        (lambda data: data["belonging"]["sampling"].update(steps=0), "sampling.steps must be at least 1, not 0"),
    ],
)
def test_a_damaged_table_is_refused_by_its_field(table: StrategyTable, change: Callable[[dict], object], words: str):
    data = copy.deepcopy(table.to_json())
    change(data)
    with pytest.raises(ProfileError, match=words):
        StrategyTable.from_json(data, "table")


def test_official_json_round_trip(table: StrategyTable) -> None:
    data = json.loads(json.dumps(table.to_official()))
    assert data["methods"][0] == ["NONE", "NONE", "TS", "TS", "BS", "BS"]
    again = StrategyTable.from_official(data, table.compatibility, table.branch_skip, "6_0.1.json")
    assert again.actions == table.actions and again.fingerprint == table.fingerprint
    assert again.origin == "imported from 6_0.1.json"
    table = StrategyTable(compatibility(8), ((N, N, T, T, B, T, N, B),))
    assert table.to_official()["need_cached_output"] == [[False, True, False, False, True, False, True, False]]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"methods": [["NONE", "SKIP"]]}, r"a.json: methods\[0\]\[1\] must be NONE, TS or BS"),
        ({"methods": [["NONE", "TS"]]}, "2 steps in layer 1, but its grid has 6"),
        ({"method": []}, r"a\.json is not an official strategy table"),
    ],
)
def test_a_damaged_official_table_is_refused(data: dict, words: str, table: StrategyTable) -> None:
    with pytest.raises(ProfileError, match=words):
        StrategyTable.from_official(data, table.compatibility, "both", "a.json")


def test_a_table_that_forecasts_is_another_one_and_not_the_official_codes() -> None:
    table = StrategyTable(compatibility(), ROWS)
    forecasts = replace(table, temporal="forecast")
    assert "temporal" not in table.to_json()
    assert StrategyTable.from_json(forecasts.to_json()) == forecasts and forecasts.fingerprint != table.fingerprint
    assert forecasts.changed(1, 1, SkipAction.TS).temporal == "forecast"
    with pytest.raises(ProfileError, match="the official code does not know"):
        forecasts.to_official()
    with pytest.raises(ProfileError, match="temporal must be one of reuse, forecast"):
        replace(table, temporal="guess")


@pytest.mark.parametrize("folder", ["/home/somebody/my tables/", "C:\\Users\\somebody\\"])
def test_an_imported_table_names_its_file_without_the_folder(table: StrategyTable, folder: str) -> None:
    again = StrategyTable.from_official(table.to_official(), table.compatibility, "both", f"{folder}6_0.1.json")
    assert again.origin == "imported from 6_0.1.json"
    # Tables of earlier versions have the folder.
    data = table.to_json() | {"origin": f"imported from {folder}6_0.1.json, edited by hand"}
    assert StrategyTable.from_json(data).origin == "imported from 6_0.1.json, edited by hand"


@pytest.mark.parametrize(("seed", "threshold"), [(0, 0.02), (1, 0.1), (2, 0.4)])
def test_a_derived_table_that_calls_itself_exact_is_what_a_calibration_there_gives(seed: int, threshold: float) -> None:
    record = calibrate(threshold, seed)
    exact = 0
    low, high = record.exact_interval
    near = [low + (high - low) * share for share in (0.01, 0.3, 0.99)] if np.isfinite(high) else [1.01 * low]
    for other in (*THRESHOLDS, *near):
        derived = record.derive(other)
        if derived.exact:
            again = calibrate(other, seed)
            assert derived.table.actions == again.table.actions
            assert [(one.layer, one.step, one.accepted) for one in record.trials] == [
                (one.layer, one.step, one.accepted) for one in again.trials
            ]
            assert derived.differs_at is None
            exact += 1
    assert exact >= len(near)


@pytest.mark.parametrize("seed", range(2))
def test_a_derived_table_names_the_first_trial_that_a_calibration_decides_otherwise(seed: int) -> None:
    record = calibrate(0.1, seed)
    predicted = 0
    for other in THRESHOLDS:
        derived = record.derive(other)
        if derived.exact:
            continue
        predicted += 1
        # Up to the first difference both calibrations do and measure the same.
        pairs = zip(record.trials, calibrate(other, seed).trials, strict=False)
        index, first = next((index, mine) for index, (mine, theirs) in enumerate(pairs) if mine != theirs)
        assert derived.differs_at == first
        # The first difference is a decision, not an error.
        assert record.trials[index].accepted != (record.trials[index].error < (first.layer + 1) / LAYERS * other)
    assert predicted > 10


@pytest.mark.parametrize("seed", range(2))
def test_the_exact_interval_is_where_derived_tables_are_exact(seed: int) -> None:
    record = calibrate(0.1, seed)
    low, high = record.exact_interval
    assert low < record.threshold <= high
    for other in (*THRESHOLDS, low * 0.9999, low * 1.0001, high * 0.9999, high * 1.0001):
        assert record.derive(other).exact == (low < other <= high), other


def test_a_derived_table_says_where_it_is_from_and_how_much_it_skips() -> None:
    record = calibrate(0.13)
    derived = record.derive(0.13)
    assert derived.table == record.table and derived.table.origin == "calibrated at threshold 0.13"
    assert record.derive(0.5).table.origin == "predicted at threshold 0.5"
    record = calibrate(0.05, 1)
    assert record.derive(0.0).table.skipped_share == 0
    assert record.derive(1e6).table.skipped_share == pytest.approx((LAYERS * (STEPS - 1)) / (LAYERS * STEPS))


def test_predicted_errors_of_one_step_add_up() -> None:
    def trial(layer: int, action: SkipAction, error: float, accepted: bool = False) -> Trial:
        return Trial(CALIBRATION, 2, layer, action, error, accepted)

    # Measured alone, every cell would pass 0.5; two together only where the bounds have grown with the layer.
    trials = tuple(
        trial(layer, action, error)
        for layer in range(LAYERS)
        for action, error in ((SkipAction.TS, 0.09 * (layer + 1)), (SkipAction.BS, 0.01))
    )
    record = replace(calibrate(0.0), trials=trials, knobs=Values(threshold=0.0))
    column = [record.derive(0.5).table.actions[layer][2] for layer in range(LAYERS)]
    # Bounds 0.1 … 0.5. Layer 1: 0.09 passes. Layer 2: 0.09 + 0.18 does not, 0.09 + 0.01 does. Layer 3: 0.1 + 0.27 does
    # not, 0.11 does. And so on.
    assert column == [SkipAction.TS, *[SkipAction.BS] * (LAYERS - 1)]


def test_cells_are_marked_from_the_cut_on_and_counted_where_nothing_was_measured() -> None:
    record = calibrate(0.4, 2)
    derived = record.derive(0.001)
    tried = {(one.layer, one.step) for one in record.trials}
    measured = {(one.layer, one.step) for one in record.trials if one.action is SkipAction.BS}
    assert derived.table.skipped_share == 0 and derived.unmeasured == len(tried - measured) > 0
    assert record.derive(0.4).unmeasured == 0
    record = calibrate(0.1)
    assert record.marked.sum() == pytest.approx(0.2 * LAYERS * STEPS)
    pre = {(one.layer, one.step) for one in record.trials if one.phase == PRE_CALIBRATION}
    assert pre == {(int(layer), int(step)) for layer, step in np.argwhere(record.marked) if step}


def test_fingerprints_tell_calibrations_apart() -> None:
    record = calibrate(0.1)
    others: list[CalibrationRecord] = [
        replace(record, sentences=(Sentence("A sentence.", "bdl"),)),
        replace(record, combine="mean"),
        replace(record, knobs=record.knobs.replace(marked=20.0)),
        calibrate(0.3),
    ]
    prints = {one.fingerprint for one in (record, *others)}
    assert len(prints) == 1 + len(others) and all(len(one) == 16 and int(one, 16) >= 0 for one in prints)
    assert calibrate(0.1).fingerprint == record.fingerprint
    again = pickle.loads(pickle.dumps(record))
    assert again == record
    np.testing.assert_array_equal(again.similarities, record.similarities)
