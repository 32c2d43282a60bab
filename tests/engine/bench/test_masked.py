"""The benches of masked models, on a small one: what they compare, and that their figures agree."""

import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import pytest

from paretone import cli
from paretone.bench import MOVED, masked, omnivoice
from paretone.models import load_model
from paretone.models.catalogue import entry, harvard_sentences
from paretone.models.networks.masked_network import MaskedConfig, Qwen3Config
from paretone.setting.setting import Setting
from paretone.techniques import problem
from tests.engine.small_omni_mini import write_model
from tests.packages import needs
from tests.peers.__main__ import main as peers
from tests.peers.omnivoice_exact import OWN_LAYERS, UNPADDED
from tests.workload import only_in_full, workload

pytestmark = [needs("transformers"), pytest.mark.usefixtures("only_words")]
ROOT = Path(__file__).resolve().parents[3]
SHORT = ("The rice was good.", "They went home.")
"""What is timed in place of Harvard sentences. What is judged stays one: of few words, noise is taken for some."""
ROWS = ("--full-rows", "5", "6", "7")
SMALL = MaskedConfig(Qwen3Config(32, 2, 4, 2, 16, 48, 1e-6, 1e6), 64, 4, 33)


SPEAKS = all(find_spec(name) for name in ("hibari", "pocketsphinx", "jiwer"))
"""Whether there is original speech, and a judge of words."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small model; networks of full size are small as well."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("paretone.bench.omnivoice", "tests.peers.omnivoice_exact"):
            patch.setattr(f"{module}.FULL_SIZE", SMALL)
        said = workload(harvard_sentences(), SHORT)
        patch.setattr(masked, "harvard_sentences", lambda: said)
        yield write_model(tmp_path_factory.mktemp("masked") / "model")


def report_of(root: Path, name: str, *more: str) -> tuple[dict, dict[str, list]]:
    command = [name, "--folder", str(root), "--device", "cpu", "--rounds", "2", "--steps", "4", "--json"]
    with redirect_stdout(StringIO()) as said:
        assert (peers([*command, *more]) if name in MOVED else cli.main(["bench", *command, *more])) == 0
    report = json.loads(said.getvalue())
    rows: dict[str, list] = {}
    for row in report["rows"]:
        rows.setdefault(row["way"], []).append(row)
    return report, rows


def test_exact_savings_leave_every_code(root: Path) -> None:
    report, rows = report_of(root, "omnivoice-exact", "--full-rounds", "1")
    assert list(rows) == [masked.OFFICIAL, OWN_LAYERS, UNPADDED, masked.EXACT]
    for mini, full in rows.values():
        equal, cells = mini["codes equal"].split(" of ")
        assert equal == cells and full["largest difference"] < 1e-3
        assert {"low", "high"} <= mini.keys() and not {"low", "high"} & full.keys(), "one round has no interval"
    assert report["headline"] == rows[masked.EXACT][0]["speed-up"]


@only_in_full("speech")
def test_techniques_are_added_one_by_one(root: Path) -> None:
    _, rows = report_of(root, "omnivoice", "--sentences", "0", "--full-rounds", "1", "--generations", "2", *ROWS)
    full, mini, *_ = rows[masked.OFFICIAL]
    assert full["speed-up"] == mini["speed-up"] == 1
    exact_full, exact, *_ = rows[masked.EXACT]
    assert exact_full["largest difference"] < 1e-3
    assert {"low", "high"} <= exact.keys() and not {"low", "high"} & exact_full.keys(), "one round has no interval"
    assert exact["launches per forward"] < mini["launches per forward"]
    assert {"exact, 2 steps", "exact, blockwise", "exact, sentence by sentence"} <= rows.keys()
    together = next(one for name, (one, *_) in rows.items() if name.endswith("with all of these together"))
    assert together["launches per forward"] <= exact["launches per forward"] + 40


@only_in_full("speech")
@pytest.mark.skipif(not SPEAKS, reason="hibari-tts, pocketsphinx or jiwer is not installed")
@pytest.mark.parametrize(("name", "plain"), [("omnivoice", masked.EXACT), ("omnivoice-first-audio", "whole canvas")])
def test_quality_is_reported_with_speed(root: Path, name: str, plain: str) -> None:
    _, rows = report_of(root, name, "--sentences", "2")
    (original,) = rows["original speech"]
    assert original["word error rate"] < 0.2 and "codes equal" not in original
    # The shipped voices can be told from one another.
    assert original["timbre to other voices (dB)"] > 0.5
    same = rows[plain][-1]
    assert (same["codes equal"], same["first codes equal"], same["timbre to the plain run (dB)"]) == (1, 1, 0)
    # What a small random model says is noise in any way.
    assert same["word error rate"] > 0.5
    blocks = rows["exact, blockwise" if name == "omnivoice" else "blockwise"][0]
    assert 0 < blocks["codes equal"] < 1 and blocks["timbre to the voice (dB)"] > 0
    assert blocks["errors"].endswith(original["errors"].split(" of ")[1])


def test_a_graphics_card_has_ways_of_its_own(root: Path) -> None:
    model = load_model("omni-mini", folder=str(root), device="cpu")
    plain = Setting("omni-mini", entry("omni-mini").options_with(steps=8))
    processor = replace(model.info, precisions=("float32", "bfloat16"), lacking=(("recording", "No."),))
    ways = omnivoice.possible_ways(plain, processor)
    assert not any("CUDA graphs" in name or "compile" in name for name in ways)
    on_card = replace(model.info, precisions=("float32", "bfloat16", "bfloat16_all"), lacking=())
    card = omnivoice.possible_ways(plain, on_card)
    assert {"+ all exact savings, CUDA graphs", "+ bfloat16_all, CUDA graphs", "exact, torch.compile"} < card.keys()
    for name, way in card.items():
        assert problem(on_card, way.setting) is None, name
    assert [name for name, way in card.items() if way.headline] == [masked.EXACT, "+ bfloat16", "+ bfloat16_all"]
    assert [name for name, way in card.items() if not way.judged] == [masked.OFFICIAL, "exact, sentence by sentence"]
    reused = "exact, all layers at every second"
    assert reused not in card, "two layers leave none to reuse"
    assert reused in omnivoice.possible_ways(plain, replace(model.info, layers=8))
    together = card["+ bfloat16_all, with all of these together"]
    used = {one.technique for one in together.setting.techniques}
    assert used == {"precision", "fewer_steps", "guidance_stride", "frozen_prefix"}


def test_other_families_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "omnivoice", "--model", "f5-mini", "--device", "cpu"]) != 0
    assert "F5 mini is not a masked model" in capsys.readouterr().err
