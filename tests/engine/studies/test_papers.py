"""The papers' tables as studies: each has the published rows, and runs on small checkpoints of the official layouts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paretone.models.llasa import adapter as llasa
from paretone.models.megatts3 import graphemes
from paretone.paths import resource
from paretone.studies import definition
from paretone.studies.gains import published_rows
from paretone.studies.results import read
from paretone.studies.running import FINISHED
from paretone.studies.wording import published_lines
from tests.engine.measure.roofline.test_layouts import LAYOUTS
from tests.engine.studies import small
from tests.workload import workload

FILES = sorted(resource("studies", "papers").glob("*.toml"))
OFFICIAL = [one for one in FILES if "published" in definition.values(one)]
QUICKEST = [one for one in OFFICIAL if one.stem in ("cfg-free-table-1", "spade-table-1-cosyvoice2")]
LACKING = {
    "cfg-free-table-1": "train",
    "spade-table-2": "has no weights for SPADE (fewer layers) yet",
    "spade-table-1-cosyvoice2": "has been trained yet; train one",
    "spade-table-1-llasa": "has been trained yet; train one",
    "ssd-tables-1-to-3": "train one first",
    "omnivoice-first-audio": "NVIDIA GPU",
}
"""What the settings without takes say, where weights have to be trained first or a card is needed."""


def values(file: Path, **changes: object) -> dict[str, Any]:
    given = {**definition.values(file), **changes}
    return {name: value for name, value in given.items() if value is not None}


@pytest.mark.parametrize("file", OFFICIAL, ids=lambda one: one.stem)
def test_every_published_row_has_its_setting(file: Path) -> None:
    given = values(file)
    names = {one["name"] for one in given["setting"]}
    rows = {one.label for one in published_rows(given["published"])}
    assert names == rows


@pytest.mark.parametrize("file", [one for one in FILES if one not in OFFICIAL], ids=lambda one: one.stem)
def test_a_bundled_model_has_the_same_table(file: Path) -> None:
    twin = next(one for one in OFFICIAL if file.stem.startswith((one.stem, "spade-table-1")))
    study = definition.read(file)
    assert all(one.setting.model == study.model for one in study.candidates)
    if "spade" not in file.stem:
        assert [one["name"] for one in values(file)["setting"]] == [one["name"] for one in values(twin)["setting"]]


@pytest.mark.slow
@pytest.mark.parametrize("file", workload(OFFICIAL, QUICKEST), ids=lambda one: one.stem)
def test_it_runs_on_a_small_official_checkpoint(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Random weights end when they like, or not at all.
    monkeypatch.setattr(llasa, "CONTEXT", 200)
    monkeypatch.setattr(graphemes, "LONGEST", 6)
    given = values(file)
    name = {"F5TTS_v1_Base": "f5-mini"}.get(given["model"], given["model"])
    model, voice, _ = LAYOUTS[name](tmp_path / "models")
    if voice.id == "own":
        given["voices"] = [{"audio": voice.audio, "transcript": voice.transcript}]
    elif "voices" in given:
        given["voices"] = 1
    few = given["setting"][: workload(None, 2)]
    for one in few:  # The small models have three layers.
        if spade := one.get("techniques", {}).get("spade"):
            spade["depth"] = 2 if spade["depth"] > 9 else 1
    if "steps" in given.get("options", {}):
        given["options"]["steps"] = 4
    if name.startswith("Llasa"):  # The small release has no encoder for recordings.
        given["options"] = {"clone": False}
    given |= {"folder": str(tmp_path / "models" / name), "setting": few, "sentences": ["Rice."], "judges": []}
    study = definition.parse({**given, "count": 1, "rounds": min(2, given.get("rounds", 1)), "seeds": [0]})
    assert small.finished(tmp_path / "results", study, load=lambda *_, **__: model) == FINISHED
    found = read(tmp_path / "results")
    assert found.settings[0].finished, found.failures
    for one in found.settings:
        assert one.finished or LACKING[file.stem] in one.problem, one.problem
    lines = published_lines(found)
    assert len(lines) == 1 + len(published_rows(given["published"]))
    times = ("RTF", "Backbone RTF", "TTFA (P90)") if file.stem != "spade-table-2" else ("not measured",)
    assert ": published " in lines[1] and any(f"here {one}" in lines[1] for one in times)
