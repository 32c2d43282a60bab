"""The benches of speech language models, on a small one: what they compare, and that their figures agree."""

import re
from pathlib import Path

import pytest

from paretone.bench.budget import Budget, Turns
from paretone.bench.language import Decoded
from paretone.models import catalogue
from paretone.models.catalogue import voice
from paretone.sampling.autoregressive import Cycle
from paretone.sampling.draft_length import LONGEST
from paretone.techniques.speculative import ssd_bench
from paretone.techniques.speculative.ssd_bench import Accepting, diversities, equal_tolerance
from tests.engine.command_line import Console
from tests.engine.export.test_language import with_companions
from tests.engine.small_language import write_draft, write_model, write_order, write_student
from tests.engine.speaking import load, setting
from tests.packages import needs
from tests.workload import only_in_full, workload

SENTENCE = catalogue.harvard_sentences()[:1]
OFFICIAL = "CosyVoice2-0.5B"
GREEDY = "paretone.techniques.speculative.ssd_bench.GREEDY_TOKENS"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(GREEDY, workload(ssd_bench.GREEDY_TOKENS, 15))
    return write_model(tmp_path / "model")


def rows_of(console: Console, root: Path, name: str, *more: str) -> tuple[dict, dict[str, dict]]:
    given = "--folder", root, "--device", "cpu", "--rounds", 2, "--sentences", 0, "--json"
    report = console.data("bench", name, *given, *more)
    return report, {str(row.get("way", row.get("speech"))): row for row in report["rows"]}


def test_ssd_is_timed_against_plain_decoding(root: Path, console: Console) -> None:
    write_draft(root)
    write_student(root)
    report, rows = rows_of(console, root, "ssd", "--tolerance", "0.3", "--student")
    speculative = [name for name in rows if name.startswith("SSD")]
    ways = [f"SSD, β = {tolerance}{which}" for which in ("", ", student drafts") for tolerance in ("0", "0.3")]
    assert speculative == [*ways, "SSD, β = 0, token by token"]
    for row in map(rows.get, speculative):
        assert 1 <= row["tokens per pass"] <= LONGEST + 1 and 0 <= row["acceptance"] <= 1
        assert row["low"] <= row["speed-up"] <= row["high"]
        assert row["predicted"] > 0 and row["c"] > 0
    # The last pass gives the end.
    assert 0.95 < rows["autoregressive"]["tokens per pass"] < 1
    assert report["headline"] == rows["SSD, β = 0.3"]["speed-up"]
    assert rows["verifying passes of all ways"]["v(4)"] > 0 and "autoregressive, again (A/A)" in rows
    (greedy,) = (name for name in rows if name.startswith("greedy"))
    equal, total = re.search(r"(\d+) of (\d+) tokens", greedy).groups()
    assert equal == total and int(total) > 10


@only_in_full("speech")
def test_groups_are_compared_with_tolerances(root: Path, console: Console) -> None:
    write_draft(root, lambda weight: 1.1 * weight)
    report, rows = rows_of(console, root, "ssd", "--groups", "--draft-length", "3")
    tolerated = ["SSD, β = 0", "SSD, β = 0.2", "SSD, β = 0.4", "SSD, β = 0.4, as published"]
    grouped = [name for name in rows if "groups" in name]
    assert list(rows) == ["autoregressive", *tolerated, *grouped, "autoregressive, again (A/A)"]
    assert len(grouped) == 4 and report["headline"] == rows[grouped[0]]["speed-up"]
    assert all(0 <= rows[name]["acceptance"] <= 1 for name in (*tolerated, *grouped))
    assert "headline" in report and "first of the other ways" in report["definition"]


def test_the_tolerance_that_is_as_fast() -> None:
    tolerated = {0.0: 1.0, 0.2: 1.2, 0.4: 1.1}
    assert equal_tolerance(1.1, tolerated) == pytest.approx(0.1)
    assert equal_tolerance(0.9, tolerated) == "below 0" and equal_tolerance(1.3, tolerated) == "above 0.4"


def test_diversity_is_over_seeds(root: Path) -> None:
    plain = {"plain": setting(), "greedy": setting(temperature=0.0)}
    turns = Turns(Budget(1, most=2), least=1)
    found = diversities(load(root), Accepting({}, (), ""), plain, voice("", "lm-mini"), SENTENCE, 2, turns)
    assert list(found) == ["plain", "greedy"]
    # Takes that are equal, or have no voice, which noise may not have.
    assert found["greedy"] in (0.0, None)


@only_in_full("speech")
@needs("onnx", "onnxruntime", "tokenizers")
def test_official_releases_are_timed_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, console: Console) -> None:
    """Their samplers know no temperature: what is likeliest is compared all the same."""
    monkeypatch.setattr(GREEDY, 15)
    report, rows = rows_of(console, with_companions(OFFICIAL, tmp_path / OFFICIAL), "ssd", "--model", OFFICIAL)
    assert report["headline"] == rows["SSD, β = 0.4"]["speed-up"]
    assert f"greedy at β = 0: {3 * 15} of {3 * 15} tokens equal" in rows
    assert all(row["acceptance"] > 0 for name, row in rows.items() if name.startswith("SSD"))


@pytest.mark.parametrize(
    "wrong", [("--threads", "0"), ("--sentences", "-3"), ("--model", "f5-mini"), ("--groups", "--seeds=1")]
)
def test_what_cannot_be_timed_is_said(wrong: tuple[str, str], console: Console) -> None:
    said = console.refusal("bench", "ssd", "--device", "cpu", "--rounds", "2", *wrong, code=2)
    assert "must be a whole number from" in said or "is not a speech language model" in said


def test_students_are_timed_against_the_whole_model(root: Path, console: Console) -> None:
    write_student(root)
    write_student(root, stage="minutes:5", minutes=5.0)
    write_order(root)
    report, rows = rows_of(console, root, "spade")
    assert list(rows)[:4] == ["whole model", "pruned", "briefly retrained, 5 minutes", "fully retrained, 2 of 3 layers"]
    assert report["headline"] == rows["fully retrained, 2 of 3 layers"]["speed-up"]


@pytest.mark.parametrize(("name", "words"), [("ssd", "train draft"), ("spade", "train spade")])
def test_without_weights_they_say_how_to_come_by_them(root: Path, name: str, words: str, console: Console) -> None:
    assert words in console.refusal("bench", name, "--folder", str(root), "--device", "cpu")


def test_figures_follow_from_the_cycles() -> None:
    first = Cycle((1, 2, 3), (1, 2, 9), 2, "resampled", (1.0, 0.8, 0.1), draft_seconds=3.0, target_seconds=2.0)
    second = Cycle((4, 5, 6, 7), (4, 5, 6), 3, "bonus", (1.0, 1.0, 1.0), draft_seconds=6.0, target_seconds=4.0)
    found = Decoded([0.5, 0.7, 0.6], [first, second], token_rate=10.0)
    assert (found.tokens, found.tokens_per_pass, found.draft_length) == (7, 3.5, 3.0)
    assert found.acceptance == pytest.approx(5 / 6)
    assert (found.draft_seconds, found.target_seconds) == (1.5, 3.0)
    assert found.real_time_factor == pytest.approx(6.0)
    assert Decoded([1.0], [Cycle((1,))]).acceptance is None
