"""Calibrations outlive the window."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paretone.errors import ProfileError
from paretone.models.catalogue import entry
from paretone_app.features.strategy.state import StrategyState, read_record
from paretone_app.state.app_state import AppState
from paretone_app.state.jobs import Jobs
from tests.app.presenters import INFO
from tests.app.records import compatibility, record


def store(folder: Path) -> StrategyState:
    return StrategyState(AppState(Jobs([].append)), folder)


def test_the_store_finds_the_newest_that_fits_as_it_was(tmp_path: Path) -> None:
    kept = store(tmp_path)
    older = record(0.1, "2026-11-20T10:00:00+00:00")
    newer = record(0.2, "2026-11-21T10:00:00+00:00")
    other = record(0.1, "2026-11-22T10:00:00+00:00", model="F5TTS_Base")
    for one in (newer, other, older):
        kept.keep(one)
    state = AppState(Jobs([].append))
    again = StrategyState(state, tmp_path)
    assert len(again.kept) == 3
    found = again.chosen(compatibility())
    assert found == newer and found.derive(0.2) == newer.derive(0.2)
    np.testing.assert_array_equal(found.similarities, newer.similarities)
    assert again.chosen(compatibility(steps=8)) is None
    assert again.chosen(compatibility(model="F5TTS_Base")) == other
    state.selection.set_knob("ditreducio", "metric", "relative")
    assert again.chosen(compatibility()) is None


@pytest.mark.parametrize(
    ("content", "says"), [("{", "cannot be read"), ('{"schema": 99}', "schema 99"), ('{"schema": 2}', "table")]
)
def test_a_damaged_file_is_named_and_passed_over(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "damaged.json").write_text(content)
    with pytest.raises(ProfileError, match=says):
        read_record(tmp_path / "damaged.json")
    read = store(tmp_path)
    assert read.kept == [] and "damaged.json" in read.problems[0]


def test_what_cannot_be_written_is_kept_in_memory(tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("not a folder")
    unkept = store(blocked)
    unkept.keep(record())
    assert "could not be written" in unkept.problems[0] and unkept.chosen(compatibility()) == record()


WRITTEN = Path(__file__).resolve().parents[3] / "first_edition" / "calibrations"


def test_calibrations_are_read_and_give_tables(tmp_path: Path) -> None:
    read = store(shutil.copytree(WRITTEN, tmp_path / "calibrations"))
    assert not read.problems
    (record,) = read.kept
    skipped = [record.derive(threshold).table.skipped_share for threshold in (0.0, 0.1, 0.4)]
    assert skipped == sorted(skipped) and skipped[0] < skipped[-1]


def test_a_table_of_a_flow_after_a_language_model_belongs_to_that_flow(tmp_path: Path) -> None:
    state = AppState(Jobs([].append))
    cosyvoice = entry("Fun-CosyVoice3-0.5B")
    flow = replace(cosyvoice.mel_flow, layers=22, fingerprint="f" * 64)
    told = {"id": cosyvoice.id, "family": "language", "knobs": cosyvoice.options, "layers": 24}
    state.selection.choose_model(cosyvoice.id, "", "", "cpu", replace(INFO, **told, mel_flow=flow))
    kept = StrategyState(state, tmp_path)
    wanted = kept.compatibility()
    assert wanted is not None and (wanted.fingerprint, wanted.steps) == ("f" * 64, 10)
    kept.skip_nothing()
    assert (kept.table.layers, kept.table.steps) == (22, 10)
    state.selection.set_option("flow_steps", 6)
    assert kept.compatibility().steps == 6
