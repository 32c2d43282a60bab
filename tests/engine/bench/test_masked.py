"""The benches of masked models, on a small one: what they compare, and that their figures agree."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import pytest

from paretone import bench, cli
from paretone.bench import masked, omnivoice
from paretone.models import load_model
from paretone.models.catalogue import entry, harvard_sentences
from paretone.models.networks.masked_network import MaskedConfig, Qwen3Config
from paretone.setting.setting import Setting
from paretone.techniques import problem
from paretone.techniques.blockwise import bench as first_audio
from tests.engine.small_omni_mini import write_model
from tests.judges import only_words  # noqa: F401
from tests.packages import needs
from tests.workload import only_in_full, workload

pytestmark = [needs("transformers"), pytest.mark.usefixtures("only_words")]
ROOT = Path(__file__).resolve().parents[3]
GROWING = """
import sys
import numpy as np
from paretone import cli
from paretone.bench import omnivoice
from paretone.models.families.masked import MaskedSpeech

root, *amounts = sys.argv[1:]
omnivoice.SETTLED = 3
found = omnivoice._Taken([1.0], [1.0], [0.0], 1, 1.0)
omnivoice._taken = lambda model, ways, *given: dict.fromkeys(ways, found)
omnivoice._launches = lambda model, ways, *given: dict.fromkeys(ways, 1)
kept, stream = [], MaskedSpeech.stream

def keeping(self, *given):
    kept.append(np.ones(int(amount), np.uint8))
    return stream(self, *given)

MaskedSpeech.stream = keeping
command = ["bench", "omnivoice", "--folder", root, "--device", "cpu", "--rounds", "2", "--steps", "4", "--json"]
for amount in amounts:
    if cli.main([*command, "--full-rounds", "0", "--generations", "8", "--sentences", "0"]):
        sys.exit(1)
"""
"""Measures the memory of eight generations, each of which keeps some bytes; for each amount, the smallest first."""
KEPT = (0, 48 << 20)
SHORT = ("The rice was good.", "They went home.", "The rice was cold.", "We went there.")
"""What is timed in place of Harvard sentences. What is judged stays one: of few words, noise is taken for some."""
SMALL = MaskedConfig(Qwen3Config(32, 2, 4, 2, 16, 48, 1e-6, 1e6), 64, 4, 33)


SPEAKS = all(find_spec(name) for name in ("hibari", "pocketsphinx", "jiwer"))
"""Whether there is original speech, and a judge of words."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small model; networks of full size are small as well."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("omnivoice", "omnivoice_exact"):
            patch.setattr(f"paretone.bench.{module}.FULL_SIZE", SMALL)
        said = workload(harvard_sentences(), SHORT)
        for module in (omnivoice, first_audio):
            patch.setattr(module, "harvard_sentences", lambda: said)
        yield write_model(tmp_path_factory.mktemp("masked") / "model")


def report_of(root: Path, name: str, *more: str) -> tuple[dict, dict[str, list]]:
    command = ["bench", name, "--folder", str(root), "--device", "cpu", "--rounds", "2", "--steps", "4", "--json"]
    with redirect_stdout(StringIO()) as said:
        assert cli.main([*command, *more]) == 0
    report = json.loads(said.getvalue())
    rows: dict[str, list] = {}
    for row in report["rows"]:
        rows.setdefault(row["way"], []).append(row)
    return report, rows


@pytest.fixture(scope="module")
def rows_by_name(root: Path) -> Callable[[str], dict[str, list]]:
    """The rows of a bench, which is run once."""

    @cache
    def rows(name: str) -> dict[str, list]:
        more = ["--sentences", workload("2", "1") if SPEAKS else "0"]
        if name == "omnivoice":
            more += ["--full-rounds", "1", "--generations", workload("15", "4"), "--full-rows", "5", "6", "7"]
        return report_of(root, name, *more)[1]

    return rows


def test_exact_savings_leave_every_code(root: Path) -> None:
    report, rows = report_of(root, "omnivoice-exact", "--full-rounds", "1")
    ways = [masked.OFFICIAL, masked.OWN_LAYERS, masked.UNPADDED, masked.EXACT]
    assert list(rows) == ways
    for mini, full in rows.values():
        equal, cells = mini["codes equal"].split(" of ")
        assert equal == cells
        assert full["largest difference"] < 1e-3
        assert {"low", "high"} <= mini.keys() and not {"low", "high"} & full.keys(), "one round has no interval"
    assert report["headline"] == rows[masked.EXACT][0]["speed-up"]


@only_in_full("speech")
@pytest.mark.skipif(not SPEAKS, reason="hibari-tts, pocketsphinx or jiwer is not installed")
@pytest.mark.parametrize("name", ["omnivoice", "omnivoice-first-audio"])
def test_quality_is_reported_with_speed(rows_by_name: Callable[[str], dict[str, list]], name: str) -> None:
    rows = rows_by_name(name)
    (original,) = rows["original speech"]
    assert original["word error rate"] < 0.2
    assert "codes equal" not in original
    # The shipped voices can be told from one another.
    assert original["timbre to other voices (dB)"] > 0.5
    plain = rows[masked.EXACT if name == "omnivoice" else "whole canvas"][-1]
    assert (plain["codes equal"], plain["first codes equal"], plain["timbre to the plain run (dB)"]) == (1, 1, 0)
    # What a small random model says is noise in any way.
    assert plain["word error rate"] > 0.5
    blocks = rows["exact, blockwise" if name == "omnivoice" else "blockwise"][0]
    assert 0 < blocks["codes equal"] < 1
    assert blocks["timbre to the voice (dB)"] > 0
    assert blocks["errors"].endswith(original["errors"].split(" of ")[1])


def test_techniques_are_added_one_by_one(rows_by_name: Callable[[str], dict[str, list]]) -> None:
    rows = rows_by_name("omnivoice")
    full, mini, *_ = rows[masked.OFFICIAL]
    assert full["speed-up"] == mini["speed-up"] == 1
    exact_full, exact, *_ = rows[masked.EXACT]
    assert exact_full["largest difference"] < 1e-3
    assert {"low", "high"} <= exact.keys() and not {"low", "high"} & exact_full.keys(), "one round has no interval"
    assert exact["launches per forward"] < mini["launches per forward"]
    assert exact_full["launches per forward"] < full["launches per forward"]
    assert {"exact, 2 steps", "exact, blockwise", "exact, sentence by sentence"} <= rows.keys()
    together = next(one for name, (one, *_) in rows.items() if name.endswith("with all of these together"))
    assert together["launches per forward"] <= exact["launches per forward"] + 40


@only_in_full("endurance")
def test_memory_that_grows_is_seen(root: Path) -> None:
    """In a process of its own: in this one, memory of earlier tests may be released in between."""
    command = [sys.executable, "-c", GROWING, str(root), *map(str, KEPT)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for kept_by_each, report in zip(KEPT, map(json.loads, done.stdout.splitlines()), strict=True):
        (memory,) = (row for row in report["rows"] if "generations of different lengths" in row["way"])
        assert memory["growth since (MB)"] == pytest.approx(memory["peak after 8 (MB)"] - memory["peak after 3 (MB)"])
        leaked = 5 * kept_by_each / 1e6
        # The peak also holds what a synthesis needs for a moment.
        assert leaked - 60 < memory["growth since (MB)"] < leaked + 60


def test_a_graphics_card_has_ways_of_its_own(root: Path) -> None:
    model = load_model("omni-mini", folder=str(root), device="cpu")
    plain = Setting("omni-mini", entry("omni-mini").options_with(steps=8))
    ways = omnivoice._ways(
        plain, replace(model.info, precisions=("float32", "bfloat16"), lacking=(("recording", "No."),))
    )
    assert not any("CUDA graphs" in name or "compile" in name for name in ways)
    on_card = replace(model.info, precisions=("float32", "bfloat16", "bfloat16_all"), lacking=())
    card = omnivoice._ways(plain, on_card)
    assert {"+ all exact savings, CUDA graphs", "+ bfloat16_all, CUDA graphs", "exact, torch.compile"} < card.keys()
    for name, way in card.items():
        assert problem(on_card, way.setting) is None, name
    assert [name for name, way in card.items() if way.headline] == [
        masked.EXACT,
        "+ bfloat16",
        "+ bfloat16_all",
    ]
    assert [name for name, way in card.items() if not way.judged] == [
        masked.OFFICIAL,
        "exact, sentence by sentence",
    ]
    reused = "exact, all layers at every second"
    assert reused not in card, "two layers leave none to reuse"
    assert reused in omnivoice._ways(plain, replace(model.info, layers=8))
    together = card["+ bfloat16_all, with all of these together"]
    assert {one.technique for one in together.setting.techniques} == {
        "precision",
        "fewer_steps",
        "guidance_stride",
        "frozen_prefix",
    }


@pytest.mark.parametrize("name", ["omnivoice", "omnivoice-exact", "omnivoice-first-audio"])
def test_they_are_listed(name: str) -> None:
    assert bench.summary(bench.benches()[name])


def test_other_families_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "omnivoice-exact", "--model", "f5-mini", "--device", "cpu"]) != 0
    assert "F5 mini is not a masked model" in capsys.readouterr().err
