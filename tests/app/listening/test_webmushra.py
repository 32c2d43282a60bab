"""Results and tests in webMUSHRA's forms."""

import csv
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import yaml

from paretone.errors import PlainError
from paretone.listening.trials import ItemRecord, RecordError
from paretone.measure.loudness import integrated_loudness
from paretone_app.listening import webmushra
from paretone_app.listening.stimuli import PreparedItem, Stimulus
from tests.engine.listening.listeners import (
    BASELINE,
    FAST,
    LOW,
    MID,
    abx_trial,
    mos_session,
    mushra_trial,
    preference_trial,
)

RATE = webmushra.RATE


def rows(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(content.decode().splitlines()))


def test_ratings_are_written_with_webmushras_columns() -> None:
    made = webmushra.tables([mushra_trial("s1", 1, (100, 60, 10, 40))])
    assert list(made) == ["mushra.csv"]
    head = made["mushra.csv"].decode().splitlines()[0]
    assert head == "session_test_id,session_uuid,trial_id,rating_stimulus,rating_score,rating_time,rating_comment"
    found = rows(made["mushra.csv"])
    scores = (("reference", "100"), (FAST.title, "60"), ("anchor35", "10"), ("anchor70", "40"))
    assert tuple((one["rating_stimulus"], one["rating_score"]) for one in found) == scores
    assert {(one["session_uuid"], one["rating_time"]) for one in found} == {("s1", "4200")}
    made = webmushra.tables(mos_session([(5, 3)], similarity=True))
    found = [(one["trial_id"], one["rating_stimulus"], one["rating_score"]) for one in rows(made["mos.csv"])]
    assert found == [("similarity_mos_1", BASELINE.title, "5"), ("similarity_mos_1", FAST.title, "3")]
    assert "does not export MOS" in webmushra.why_not_exported("naturalness_mos")


def test_pairs_are_written_with_webmushras_columns() -> None:
    trials = [
        abx_trial("s1", 1, x=1, said=1, planned=2),
        abx_trial("s1", 2, x=0, said=1, planned=2, text="Another, with a comma."),
        preference_trial("s2", 1, 2, (1, 0), planned=1),
    ]
    made = webmushra.tables(trials)
    assert list(made) == ["paired_comparison.csv"]
    head = made["paired_comparison.csv"].decode().splitlines()[0]
    named = "reference", "non_reference", "answer", "time", "comment"
    assert head.split(",") == ["session_test_id", "trial_id", *(f"choice_{one}" for one in named)]
    found = rows(made["paired_comparison.csv"])
    columns = "choice_reference", "choice_non_reference", "choice_answer"
    said = [tuple(each[column] for column in columns) for each in found]
    plain, fast = BASELINE.title, FAST.title
    assert said == [(fast, plain, "correct"), (plain, fast, "incorrect"), (plain, fast, "-2")]
    assert found[0]["trial_id"] != found[1]["trial_id"]


def test_what_is_void_or_was_broken_off_is_not_exported(tmp_path: Path) -> None:
    void = replace(mushra_trial("s1", 1, (1, 2, 3, 4)), void=True)
    with pytest.raises(RecordError, match="nothing to export"):
        webmushra.write_tables([void, abx_trial("s2", 1)], tmp_path)
    assert not list(tmp_path.iterdir())


def prepared(number: int, seconds: float = 1.0) -> PreparedItem:
    generator = np.random.default_rng(number)
    stimuli = []
    for place, record in enumerate((BASELINE, FAST, LOW, MID)):
        length = round(seconds * RATE) - 100 * place
        stimuli.append(Stimulus(record, 0.1 * generator.standard_normal(length).astype(np.float32)))
    return PreparedItem(ItemRecord(f"Sentence {number}.", "anna", 7), tuple(stimuli), RATE, True, -23.0, True)


def pair(number: int) -> PreparedItem:
    whole = prepared(number)
    return replace(whole, stimuli=whole.stimuli[:2])


def test_a_mushra_bundle_is_what_webmushra_wants(tmp_path: Path) -> None:
    items = [prepared(1), prepared(2)]
    written = webmushra.write_bundle("paretone-1", "mushra", items, 2, tmp_path, practice=1)
    folder = tmp_path / "paretone-1"
    assert {path.parent for path in written} == {folder}
    config = yaml.safe_load((folder / "paretone-1.yaml").read_text())
    assert config["testId"] == "paretone-1"
    volume, practice, pages, finish = config["pages"]
    noise, rate = soundfile.read(folder / Path(volume["stimulus"]).name)
    assert integrated_loudness(noise, rate).lufs == pytest.approx(-23.0, abs=0.1)
    assert (practice["id"], practice["type"], practice["stimuli"]) == ("practice_1", "mushra", pages[1]["stimuli"])
    assert "is not scored" in practice["content"]
    assert (volume["type"], finish["type"], finish["writeResults"]) == ("volume", "finish", True)
    assert pages[0] == "random"
    for number, page in enumerate(pages[1:]):
        assert (page["type"], page["createAnchor35"], page["createAnchor70"]) == ("mushra", False, False)
        assert list(page["stimuli"]) == [FAST.title, "anchor35", "anchor70"]
        assert "unaccelerated" in page["content"]
        lengths = set()
        for place, path in enumerate([page["reference"], *page["stimuli"].values()]):
            assert path.startswith("configs/paretone-1/")
            samples, rate = soundfile.read(folder / Path(path).name, dtype="float32")
            stimulus = items[number].stimuli[place]
            assert rate == RATE
            np.testing.assert_array_equal(samples[: len(stimulus.samples)], stimulus.amplified)
            assert not samples[len(stimulus.samples) :].any()
            lengths.add(len(samples))
        assert len(lengths) == 1, "webMUSHRA refuses sounds of different lengths"
    about = json.loads((folder / "paretone-1.json").read_text())
    assert len(about["sounds"]) == 8
    assert about["sounds"][0]["gain_db"] == BASELINE.gain


def test_a_preference_bundle_asks_in_both_orders_and_a_graded_one_cannot_be_made() -> None:
    (page,) = yaml.safe_load(webmushra.bundle("t", "preference", [pair(1)], 10)["t.yaml"])["pages"][1][1:]
    assert (page["type"], page["considerOrder"], len(page["stimuli"])) == ("preference_test", True, 2)
    pages = yaml.safe_load(webmushra.bundle("t", "abx", [pair(1), pair(2)], 16)["t.yaml"])["pages"][1][1:]
    assert len({one["id"] for one in pages}) == 16, "as often as was fixed"
    assert {(one["type"], len(one["stimuli"])) for one in pages} == {("paired_comparison", 1)}
    for method, items, error, why in (
        ("ccr", [pair(1)], RecordError, "no graded comparison"),
        ("mushra", [prepared(1, seconds=12.5)], RecordError, "longer than 12 s"),
        ("mushra", [replace(prepared(1), rate=44100)], ValueError, "48000"),
    ):
        with pytest.raises(error, match=why):
            webmushra.bundle("t", method, items, 1)


def test_all_files_of_a_bundle_arrive_or_none(tiny_disk: Path) -> None:
    with pytest.raises(PlainError, match="disk is full"):
        webmushra.write_bundle("big", "mushra", [prepared(1), prepared(2)], 2, tiny_disk)
    assert os.listdir(tiny_disk) == []
    # What is there and is something else stays as it is.
    (tiny_disk / "small").mkdir()
    (tiny_disk / "small" / "small.yaml").write_text("mine")
    with pytest.raises(PlainError, match="other content"):
        webmushra.write_bundle("small", "abx", [pair(1)], 1, tiny_disk)
    assert [path.name for path in (tiny_disk / "small").iterdir()] == ["small.yaml"]
