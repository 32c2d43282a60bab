"""Calibrations that an earlier version kept are found and derive tables; see ``tests/engine/test_first_edition.py``."""

from __future__ import annotations

import shutil
from pathlib import Path

from paretone_app.features.strategy.state import CalibrationStore

WRITTEN = Path(__file__).resolve().parents[3] / "first_edition" / "calibrations"


def test_calibrations_are_read_and_give_tables(tmp_path: Path) -> None:
    store = CalibrationStore(shutil.copytree(WRITTEN, tmp_path / "calibrations"))
    assert not store.problems
    (record,) = store.records
    skipped = [record.derive(threshold).table.skipped_share for threshold in (0.0, 0.1, 0.4)]
    assert skipped == sorted(skipped)
    assert skipped[0] < skipped[-1]
