from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.errors import CheckpointError, SettingError
from engine.front_end.durations import TAIL_SECONDS, DurationTable, frames, timed
from engine.front_end.frame_phones import labels
from engine.front_end.natural.phones import PHONES
from engine.front_end.phonemiser import Phonemiser
from engine.front_end.phones import PhoneVocabulary
from tests.engine.front_end.arctic import VOCABULARY, duration_table


@pytest.fixture(scope="module")
def table() -> DurationTable:
    return duration_table()


@pytest.fixture(scope="module")
def vocabulary() -> PhoneVocabulary:
    return VOCABULARY


def test_the_most_specific_context_wins() -> None:
    voice = {"aa": 1.0, "aa/1": 2.0, "aa/1/P": 3.0, "aa/0/C/C": 4.0, "t": 0.1, "pau": 0.5}
    table = DurationTable({"one": voice})
    assert table.seconds(["t", "aa", "t", "t", "t"], "one").tolist() == [0.1, 4.0, 0.1, 0.1, 0.1]
    assert table.seconds(["aa"], "one").tolist() == [3.0]
    assert table.seconds(["aa", "t"], "one").tolist() == [2.0, 0.1]
    assert table.seconds(["aa", "pau", "t"], "one")[0] == 3.0


def test_speed_scales_and_an_unknown_voice_is_the_mean_of_the_known(table: DurationTable) -> None:
    phones = Phonemiser()("A pot of tea.").phones
    slow = table.seconds(phones, "slt")
    np.testing.assert_allclose(table.seconds(phones, "slt", 2.0), slow / 2)
    np.testing.assert_allclose(table.seconds(phones, "me"), (slow + table.seconds(phones, "rms")) / 2)
    assert table.total(phones, "slt") == pytest.approx(slow.sum() + TAIL_SECONDS)


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan")])
def test_a_speed_that_is_not_positive_is_refused(table: DurationTable, speed: float) -> None:
    with pytest.raises(SettingError, match="greater than 0"):
        table.seconds(["aa"], "slt", speed)


def test_each_frame_has_the_phone_at_its_middle(vocabulary: PhoneVocabulary) -> None:
    # At 100 frames a second the middles lie at 5, 15, 25 ... ms.
    ids = frames(["aa", "t"], np.array([0.024, 0.016]), vocabulary, rate=1000, hop=10)
    assert [vocabulary.phones[one] for one in ids] == ["aa", "aa", "t", "t", "pau", "pau", "pau", "pau", "pau"]
    assert [vocabulary.phones[one] for one in labels([("aa", 0.0, 0.02)], 4, vocabulary, 1000, 10)] == ["aa"] * 4


def test_timed_phones_follow_one_another() -> None:
    laid_out = timed(["aa", "t"], np.array([0.1, 0.2]))
    assert [phone for phone, _, _ in laid_out] == ["aa", "t", "pau"]
    assert [start for _, start, _ in laid_out[1:]] == [end for _, _, end in laid_out[:-1]]


def test_a_bundled_voice_lasts_about_as_long_as_the_table_says(
    table: DurationTable, vocabulary: PhoneVocabulary
) -> None:
    phones = Phonemiser()("We will meet at the old harbor, and talk about the weather.").phones
    assert table.total(phones, "slt") == pytest.approx(3.19, abs=0.4)
    assert len(frames(phones, table.seconds(phones, "slt"), vocabulary)) == round(table.total(phones, "slt") * 93.75)


@pytest.mark.parametrize(
    "text", ["", "{}", '{"voices": {}}', '{"voices": {"a": {}}}', '{"voices": {"a": {"aa": "x"}}}', "[]"]
)
def test_a_damaged_table_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "durations.json"
    path.write_text(text)
    with pytest.raises(CheckpointError, match=r"durations\.json"):
        DurationTable.load(path)


def test_a_phone_without_any_entry_names_itself() -> None:
    with pytest.raises(CheckpointError, match="'zh'"):
        DurationTable({"one": {"aa": 0.1}}).seconds(["zh"], "one")


def test_phones_of_natural_speech_are_a_vocabulary_too(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(PHONES), encoding="utf-8")
    natural = PhoneVocabulary.load(path)
    assert natural.natural and natural.phones == PHONES
    path.write_text("\n".join((*PHONES, "aa")), encoding="utf-8")
    with pytest.raises(CheckpointError, match="'aa' is not a phone"):
        PhoneVocabulary.load(path)
