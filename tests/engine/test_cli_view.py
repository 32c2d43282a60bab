"""``paretone view`` with the bundled model."""

from pathlib import Path

import pytest

from paretone import models
from tests.engine.command_line import Console

TEXT = ["--text", "Rice.", "--steps", "3", "--quiet"]


def test_a_view_is_printed_and_written(tmp_path: Path, console: Console) -> None:
    table = tmp_path / "view.csv"
    data = console.data("view", "temporal-redundancy", *TEXT, "--first-layer", "2", "--json", "--csv", str(table))
    assert data["provenance"]["knobs"] == {"first_layer": 2, "second_layer": 7}
    assert data["panels"][0]["title"] == "Attention, layer 2"
    assert len(data["rows"]) == 4 * 3 * 3
    assert len([line for line in table.read_text(encoding="utf-8").splitlines() if line[0] != "#"]) == 1 + 36


def test_a_view_is_read_by_people(console: Console) -> None:
    out = console.out("view", "tables", *TEXT, "--count", "2", "--largest", "1")
    for said in ("Strategy tables: Which modules are skipped", "δ = 0.5, ops", "temporal skip", "figure 9", "seed 0"):
        assert said in out


def test_what_a_view_has_not_is_refused(console: Console) -> None:
    said = console.refusal("view", "temporal-redundancy", *TEXT, "--first-layer", "99")
    assert "First layer must lie between 1 and 8" in said


def test_where_nothing_can_be_written_is_said_before_anything_is_computed(
    read_only_disk: Path, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "load_model", lambda name, **more: pytest.fail("a model was loaded"))
    table = read_only_disk / "view.csv"
    said = console.refusal("view", "tables", *TEXT, "--csv", str(table), code=1)
    assert f"{table} cannot be written: that disk can only be read; choose another folder." in said
