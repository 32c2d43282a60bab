"""Checks of takes: what is damaged is found, with its place and what to do; clean speech is not marked."""

import json
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paretone.checks import words
from paretone.checks.faults import FAULTS, MARKED, checked, fault, sentences
from paretone.checks.speech import Speech, seams_of
from paretone.errors import Cancelled, SettingError
from paretone.models.voices import shipped_voices
from paretone.observer import stoppable
from paretone.setting.setting import Setting
from paretone.setting.take import DecodingTrace, Take, Trace
from tests.engine.recorder import Follower
from tests.peers import __main__ as peers
from tests.peers import faults as bench
from tests.peers.damage import DAMAGES, Damage
from tests.workload import workload

UNHEARD = tuple(one for one in FAULTS if not one.hears)


@pytest.fixture(scope="module")
def clean() -> list[bench.Clean]:
    return bench.shipped()[: workload(5, 3)]


def test_clean_speech_has_no_faults(clean: list[bench.Clean]) -> None:
    for one in clean:
        assert checked(one.speech, FAULTS if one is clean[0] else UNHEARD).findings == (), one.number


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda one: one.fault)
def test_damage_of_middle_strength_is_found(damage: Damage, clean: list[bench.Clean]) -> None:
    one = fault(damage.fault)
    if one.hears:
        pytest.importorskip("pocketsphinx")
    found, of = bench.detection(one, damage, 1, clean[: workload(5, 1)] if one.hears else clean)
    assert found == of > 0


def test_every_fault_but_the_judged_one_has_a_damage_that_measures_it() -> None:
    assert {one.name for one in FAULTS} - {one.fault for one in DAMAGES} == {"voice"}
    with pytest.raises(SettingError, match="click"):
        fault("clik")


def test_a_finding_says_where_how_surely_and_what_to_do(clean: list[bench.Clean]) -> None:
    speech = clean[0].speech
    samples = speech.sound.copy()
    samples[24000:24010] = np.inf
    samples[36000:72000] = 0
    found = checked(replace(speech, samples=samples, text=""))
    assert [one.fault for one in found.findings] == ["not-a-number", "silence"]
    first, silent = found.findings
    assert first.start == 1.0 and first.sure == 1.0 and silent.start == pytest.approx(1.5, abs=0.15)
    assert found.summary == "Not a number, Silence"
    line = f"1.00 to 1.00 s (sure: 1.00): 10 samples are not numbers. {fault('not-a-number').about}"
    assert sentences(found)[0] == line


def test_a_constant_offset_is_no_other_fault(clean: list[bench.Clean]) -> None:
    speech = clean[0].speech
    ended = np.concatenate([speech.sound, np.zeros(speech.rate // 10)]) + 0.05
    assert [one.fault for one in checked(replace(speech, samples=ended), UNHEARD).findings] == ["offset"]


def test_words_that_are_not_said_are_named(clean: list[bench.Clean]) -> None:
    pytest.importorskip("pocketsphinx")
    speech = clean[0].speech
    assert speech.text == "We will meet at the old harbor, and talk about the weather."
    found = checked(replace(speech, text="We will meet seven elephants at the old harbor, and talk about the weather."))
    (missing,) = found.findings
    assert missing.fault == "missing" and missing.sentence == "“seven elephants” are missing."
    assert 0.3 < missing.start < missing.end + 0.01 < 1.2
    more = " Nobody had watered the plants, and the road over the pass was closed."
    missing = checked(replace(speech, text=speech.text + more)).findings[-1]
    assert missing.sentence == "“Nobody had watered the plants and …” are missing." and missing.start > 2


@pytest.mark.parametrize(
    ("heard", "found"),
    [
        ("Our heating [F EY L] the [D AO] coldest night", True),
        ("Our heating [F EY L] the coldest night", False),
        ("Our heating [F EY L] coldest [D AO] night", False),
        ("Our [HH IY T IH NG] the coldest night", False),
        ("Our heating [F EY] Our [D] the coldest night", True),
        ("[F EY] Our heating Our heating the coldest night", False),
    ],
)
def test_other_phones_count_together_around_a_short_word(
    heard: str, found: bool, clean: list[bench.Clean], monkeypatch: pytest.MonkeyPatch
) -> None:
    names, places, place = ("Our", "heating", "the", "coldest", "night"), list[words.Heard](), 0.0
    for one in re.findall(r"\[[^]]*]|\w+", heard):
        phones = tuple(one[1:-1].split()) if one[0] == "[" else ()
        places.append(words.Heard(-1 if phones else names.index(one), place, place + 0.2, phones))
        place += 0.2
    spelled = tuple(tuple(one) for one in ("AW R", "HHITN", "DX", "KOLDST", "NYT"))
    monkeypatch.setattr(words, "listen", lambda speech: words.Listened(names, spelled, tuple(places)))
    assert any(one[2] >= MARKED for one in words.added(clean[0].speech)) == found


@pytest.mark.parametrize(
    ("first", "dearer", "again"),
    [
        ("0 1 R DH IH 2 3", "0 1 0 1 2 3", True),
        ("0 1 R DH IH 2 3", "0 1 R 1 2 2 3", False),
        ("0 1 R DH 2 3", "0 1 0 1 2 3", False),
    ],
    ids=["said again", "words too short", "sounds too few"],
)
def test_unclear_sounds_are_words_said_again_if_dearer_sounds_say_so(first: str, dearer: str, again: bool) -> None:
    def walk(raw: bytes, spelled: object, price: float) -> list[words.Segment]:
        return [(name, 0, 0) for name in (first if price == words.PHONE else dearer).split()]

    said = words.decoded(b"", ["S AY D", "AH V", "DH AH", "S K W EH R"], walk)
    assert [" ".join(name for name, _, _ in one) for one in said] == [first, dearer if again else ""]


def test_only_words_around_unclear_sounds_are_aligned_again() -> None:
    names, given = [*"01234567", *"R DH IH".split(), *map(str, range(8, 16))], list[tuple[int, int]]()

    def walk(raw: bytes, spelled: Sequence[str], price: float) -> list[words.Segment]:
        given.append((len(raw) // words.FRAME_BYTES, len(spelled)))
        said = names if price == words.PHONE else [*"0123434", *"56789"]
        return [(name, 10 * place, 10 * place + 9) for place, name in enumerate(said)]

    _, again = words.decoded(bytes(190 * words.FRAME_BYTES), ["S AY D"] * 16, walk)
    assert given == [(190, 16), (130, 10)]
    assert [int(name) for name, _, _ in again] == [*range(8), 6, *range(7, 16)]
    assert again[3:5] == [("3", 30, 39), ("4", 40, 49)]


def test_off_the_main_thread_another_process_listens_and_stops_when_asked(clean: list[bench.Clean]) -> None:
    pytest.importorskip("pocketsphinx")
    speech = clean[0].speech

    def stopped() -> None:
        with stoppable(Follower(cancel_at=1).check):
            words.listen(replace(speech))

    with ThreadPoolExecutor(1) as other:
        assert other.submit(words.listen, replace(speech)).result() == words.listen(replace(speech))
        with pytest.raises(Cancelled):
            other.submit(stopped).result()


def test_what_cannot_be_listened_for_is_said(clean: list[bench.Clean], monkeypatch: pytest.MonkeyPatch) -> None:
    speech = clean[0].speech
    german = "Reis wird oft in runden Schalen serviert und gegessen."
    for text in ("Guten Morgen, wie geht es Ihnen heute?，你好", german):
        assert "only English" in words.unavailable(replace(speech, text=text))
    monkeypatch.setattr("paretone.front_end.forced_alignment.installed", lambda: False)
    (reason,) = checked(speech).unavailable
    assert "pocketsphinx is not installed" in reason and "judge" in reason


def test_signal_checks_take_milliseconds(clean: list[bench.Clean]) -> None:
    speech = clean[0].speech
    ten = replace(speech, samples=np.tile(speech.sound, 4)[: 10 * speech.rate])
    checked(ten, UNHEARD)  # Reads the text once.
    spent = []
    for _ in range(5):
        fresh, began = replace(ten), time.process_time()
        checked(fresh, UNHEARD)
        spent.append(time.process_time() - began)
    assert min(spent) < 0.1, "10 ms per second of audio; a free core needs a third of it"


@pytest.mark.parametrize("asked", [["--fault", "gap"], ["--prompts", "--fault", "late"]], ids=["takes", "prompts"])
def test_the_bench_counts_what_is_found_and_marked_wrongly(
    asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert peers.main(["faults", *asked, "--first", "1", "--takes", "1", "--speech", str(tmp_path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    row, own, total, cost = report["rows"]
    assert (row["fault"], row["middle found"], row["middle of"]) == (asked[-1], 5, 5)
    assert (row["false marks"], row["clean"]) == (0, 5)
    assert (own["damage"], total["clean"], report["headline"]) == ("none: shipped", 5, 1.0)
    assert cost["fault"] == "signal" and 0 < cost["CPU ms per second"] < 50


def test_another_voice_is_marked_where_its_likeness_was_measured(clean: list[bench.Clean]) -> None:
    assert [one.fault for one in checked(replace(clean[0].speech, similarity=0.4), UNHEARD).findings] == ["voice"]
    assert checked(replace(clean[0].speech, similarity=0.85), UNHEARD).findings == ()


def test_the_last_sound_of_a_text_is_no_burst(clean: list[bench.Clean]) -> None:
    speech = clean[0].speech
    until, noise = round(speech.span[1] * speech.rate), np.random.default_rng(0).standard_normal(speech.rate // 6)
    noise *= 10 ** ((speech.loud - 20) / 20)

    def marked(pause: float, text: str, seconds: float = 0.2) -> bool:
        silence, some = np.zeros(round(pause * speech.rate)), noise[: round(seconds * speech.rate)]
        ended = np.concatenate([speech.sound[:until], silence, some, np.zeros(speech.rate // 4)])
        return bench.found(replace(speech, samples=ended, text=text), fault("burst"))

    roof = "We will meet at the old harbor, and talk about the roof."
    assert marked(0.0, speech.text) and not marked(0.0, roof)
    assert marked(0.15, roof), "after a pause it is not the roof's"
    assert marked(0.1, speech.text, 0.06) and not marked(0.1, "At night.", 0.06), "stops are released"


def test_seams_of_a_take_are_those_of_its_trace() -> None:
    def take(trace: Trace) -> Take:
        return Take("", "", "", "", Setting("f5-mini"), 100, np.zeros(500, np.float32), trace=trace)

    assert seams_of(take(Trace(decoding=DecodingTrace(50, 10, ((), ()), (0.0, 2.5))))) == (2.5,)
    assert seams_of(take(Trace(chunk_seconds=(3.0, 2.2)))) == pytest.approx((2.9,)), "in the middle of the fade"
    assert seams_of(take(Trace(chunk_seconds=(5.0,)))) == ()


def test_nothing_is_too_short_or_too_silent_to_be_checked() -> None:
    for samples in (np.zeros(0), np.zeros(10), np.zeros(24000), np.full(24000, np.nan), np.ones(30000)):
        checked(Speech(samples.astype(np.float32), 24000, shipped_voices()[0].transcript))
