"""Listening tests before their first trial: plans, what is said before and after, and stimuli."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from paretone.listening import results
from paretone.listening.trials import (
    ABX,
    CCR,
    METHODS,
    MUSHRA,
    NATURALNESS,
    PREFERENCE,
    RANKING,
    SIMILARITY,
    STAIRCASE,
    RecordError,
)
from paretone.measure.loudness import HIGHEST_PEAK, integrated_loudness, true_peak
from paretone.models.catalogue import voice
from paretone.setting.knobs import Values
from paretone.setting.library import TakeSummary
from paretone.setting.setting import Setting, UsedTechnique
from paretone_app.listening import stimuli
from paretone_app.listening.abx import AbxSession
from paretone_app.listening.mos import MosSession
from paretone_app.listening.mushra import MushraSession
from paretone_app.listening.planning import planned
from paretone_app.listening.preference import PreferenceSession, RankingSession
from paretone_app.listening.staircase import StaircaseSession
from paretone_app.listening.stimuli import TOLERANCE_DECIBELS, Item, conditions, items, levelled, prepared, setting_key
from paretone_app.listening.wording import details, headline
from tests.app.listening.test_sessions import pages, pairs, rows
from tests.engine.listening.listeners import mos_session, mushra_trial, preference_trial, ranking_session
from tests.engine.listening.test_results import SCALE, abx_session, staircase_session

PLAIN = Setting("f5-mini")
REDUCED = PLAIN.with_technique(UsedTechnique("ditreducio"))
PRUNED = PLAIN.with_technique(UsedTechnique("steps"))
MANY = [PLAIN.with_technique(UsedTechnique("ditreducio", artefact=str(number) * 16)) for number in range(9)]
FOREIGN = Setting("lm-mini").with_technique(UsedTechnique("spade"))


def item(count: int, number: int = 0) -> Item:
    names = tuple(f"take{number}-{place}" for place in range(count))
    factors = (0.8, *(0.8 / (place + 1) for place in range(1, count)))
    return Item(f"Sentence {number}.", "anna", 7, names, names, factors)


def plan(method: str, *settings: Setting, items: int = 12, length: int = 16):
    judged = conditions(settings)
    return planned(method, judged, [item(len(judged), number) for number in range(items)], length)


def test_the_unaccelerated_one_comes_first_with_its_takes() -> None:
    made = plan(MUSHRA, REDUCED, PLAIN, PRUNED)
    assert [one.accelerated for one in made.conditions] == [False, True, True]
    assert made.items[0].takes == ("take0-1", "take0-0", "take0-2")
    assert made.items[0].fingerprints == made.items[0].takes
    assert made.roles == ("Reference", "Rated", "Rated")


@pytest.mark.parametrize(
    ("method", "settings", "reason"),
    [
        (ABX, (PLAIN,), "exactly two"),
        (ABX, (PLAIN, REDUCED, PRUNED), "3 are ticked"),
        (CCR, (), "0 are ticked"),
        (MUSHRA, (REDUCED, PRUNED), "one unaccelerated"),
        (MUSHRA, (PLAIN,), "at least one more"),
        (MUSHRA, (PLAIN, FOREIGN), "of one model"),
        (STAIRCASE, (PLAIN, REDUCED, PRUNED), "3 to 24 faster ones"),
        (RANKING, (PLAIN, REDUCED), "Tick 3 to 12 settings to rank; 2 are ticked"),
        (NATURALNESS, (), "Tick the settings to rate"),
        (MUSHRA, (PLAIN, *MANY, PRUNED), "10 settings at most"),
    ],
)
def test_what_makes_no_test_is_said(method: str, settings: tuple[Setting, ...], reason: str) -> None:
    assert reason in plan(method, *settings).why_not()


def test_a_staircases_row_rises_in_speed_or_says_why_not() -> None:
    made = plan(STAIRCASE, REDUCED, PLAIN, PRUNED, *MANY[:2])
    assert made.why_not() == ""
    # Ticked second, the reference is twice as slow as the first.
    assert made.roles == ("Reference", "0.50×", "1.50×", "2.00×", "2.50×")
    assert made.items[0].takes == ("take0-1", "take0-0", "take0-2", "take0-3", "take0-4")
    assert made.scale == pytest.approx([-1, np.log2(1.5), 1, np.log2(2.5)])
    assert made.items[0].real_time_factors == pytest.approx((0.4, 0.8, 0.8 / 3, 0.2, 0.16))
    assert "wide interval" in made.remarks()[0] and plan(STAIRCASE, PLAIN, *MANY[:3], length=45).remarks() == ()
    made = plan(STAIRCASE, PLAIN, *MANY[:3])
    for factors, reason in (((0.8, 0.0, 0.4, 0.2), "no real-time factor"), ((0.8, 0.4, 0.4, 0.2), "equally fast")):
        items = tuple(replace(one, real_time_factors=factors) for one in made.items)
        assert reason in replace(made, items=items).why_not()
    assert "No sentence" in replace(made, items=()).why_not()


def test_a_row_is_ordered_by_its_own_scale_where_sentences_differ() -> None:
    judged = conditions((PLAIN, *MANY[:3]))
    factors = ((0.8, 0.6, 0.3, 0.1), (0.8, 0.1, 0.3, 0.1))  # The second is slower on the mean, not by the mean ratio.
    items = [replace(item(4, number), real_time_factors=one) for number, one in enumerate(factors)]
    made = planned(STAIRCASE, judged, items, 16)
    assert made.why_not() == "" and list(made.scale) == sorted(made.scale)
    assert [one.real_time_factors for one in made.items] == [(0.8, 0.3, 0.6, 0.1), (0.8, 0.3, 0.1, 0.1)]


def test_remarks_say_what_the_test_can_find_and_how_many_trials_a_ranking_needs() -> None:
    made = plan(RANKING, PLAIN, FOREIGN, REDUCED, length=30)
    assert made.why_not() == "" and made.roles == ("Compared",) * 3 and made.remarks() == ()
    (remark,) = plan(RANKING, PLAIN, *MANY[:4], length=30).remarks()
    assert remark == "There are 10 pairs: with fewer than 4 trials of each (40) the intervals are wide."
    assert plan(RANKING, PLAIN, FOREIGN, REDUCED, items=0).why_not().startswith("No sentence")
    (remark,) = plan(ABX, PLAIN, REDUCED, length=16).remarks()
    assert all(one in remark for one in ("12 of 16 must be right", "p = 0.038", "15 % instead of 5 %"))
    assert "81 %" in remark or "80 %" in remark
    assert "cannot show anything" in plan(ABX, PLAIN, REDUCED, length=4).remarks()[0]
    assert "Only 3 sentences" in plan(CCR, PLAIN, REDUCED, items=3).remarks()[0]
    assert plan(PREFERENCE, PLAIN, REDUCED, items=12, length=12).remarks() == ()
    few = plan(MUSHRA, PLAIN, REDUCED, items=5).remarks()
    assert "Only 5 pages" in few[0] and "requires training" in few[1]
    assert "5 pages cannot show anything at the 5 % level about 1 setting" in few[2], "2 of 32 signs are 6 %"
    trained = replace(plan(MUSHRA, PLAIN, REDUCED, items=5), practice=1)
    assert not any("training" in one for one in trained.remarks())
    assert len(trained.session(pages(5)).practice) == 1
    assert len(plan(MUSHRA, PLAIN, REDUCED, items=8).remarks()) == 1, "training"
    assert "8 pages cannot show" in plan(MUSHRA, PLAIN, *MANY, items=8).remarks()[1], "nine settings, nine tests"


def test_each_method_has_its_session() -> None:
    for method, kind, made in (
        (ABX, AbxSession, pairs(2)),
        (CCR, PreferenceSession, pairs(2)),
        (PREFERENCE, PreferenceSession, pairs(2)),
        (MUSHRA, MushraSession, pages(2)),
        (STAIRCASE, StaircaseSession, rows(2)),
        (RANKING, RankingSession, rows(2)),
        (NATURALNESS, MosSession, pairs(2)),
        (SIMILARITY, MosSession, pairs(2)),
    ):
        settings = (PLAIN, REDUCED, PRUNED, *MANY[:1]) if method in (STAIRCASE, RANKING) else (PLAIN, REDUCED)
        session = plan(method, *settings).session(made)
        assert type(session) is kind and session.method == method
        assert len(session.listener) == 8, "somebody new has a random name"
        assert replace(plan(method, *settings), listener="known").session(made).listener == "known"
    assert {ABX, CCR, PREFERENCE, MUSHRA, STAIRCASE, RANKING, NATURALNESS, SIMILARITY} == set(METHODS)


def details_said(found: results.Result, *parts: str) -> None:
    said = " ".join(details(found))
    assert not [one for one in parts if one not in said], said


def test_a_heard_difference_and_a_null_result_are_worded_apart() -> None:
    heard = results.result(abx_session("s", 14))
    assert headline(heard) == "A difference was heard: 14 of 16 right, p = 0.002."
    assert not any("identical" in one for one in details(heard))
    missed = results.result(abx_session("s", 9))
    assert headline(missed).startswith("No difference was shown: 9 of 16 right")
    said = " ".join(details(missed))
    assert "does not mean that the two are identical" in said and "12 were needed" in said
    assert "right in 81 % of them" in said or "right in 80 % of them" in said


def test_a_preference_is_worded_with_ties_order_and_repeats() -> None:
    votes = [preference_trial("s", n + 1, 1 if n else 0, planned=8, text=f"{n}") for n in range(7)]
    found = results.result([*votes, preference_trial("s", 8, -1, (1, 0), planned=8, text="3", repeat=True)])
    assert headline(found) == "DiTReducio δ = 0.2 was preferred, p = 0.031."
    details_said(
        found,
        "CMOS of DiTReducio δ = 0.2 against baseline: +0.86 (95 % interval",
        "1 tie excluded from the sign test",
        "the order mattered",
        "1 swapped repeat: 1 did not contradict",
    )


def test_mushra_is_worded_with_its_reference_and_its_screening() -> None:
    good = [mushra_trial("s", n + 1, (100, 60, 10, 40), planned=6, text=f"{n}", listener="good") for n in range(6)]
    deaf = [replace(one, session="t", listener="deaf", answer={"ratings": [20, 60, 10, 40]}) for one in good]
    found = results.result([*good, *deaf])
    assert headline(found) == "Rated below the hidden reference: DiTReducio δ = 0.2."
    details_said(
        found,
        "unaccelerated output (baseline), not human speech",
        "−40.0 (95 % interval",
        "Listener deaf is excluded by post-screening",
    )
    assert headline(results.result(deaf)) == "No listener passed post-screening, so there is no result."


def test_a_staircase_is_worded_with_its_interval_and_its_ends() -> None:
    found = results.result(staircase_session(SCALE, heard_from=1.0))
    assert headline(found).startswith("A difference is heard every second time from 1.")
    assert "95 % interval" in headline(found) and details(found)[0] == "The reference was baseline."
    deaf = results.result(staircase_session(SCALE, heard_from=9.0))
    assert headline(deaf).startswith("No difference was heard every second time, up to 4.00× as fast (place 9)")
    golden = results.result(staircase_session(SCALE, heard_from=-5.0))
    assert headline(golden).startswith("A difference is heard even at 1.00× as fast (place 1); 95 % interval less than")
    both = results.result([*staircase_session(SCALE, 1.0), *staircase_session(SCALE, 1.5, listener="l2")])
    assert "in the middle of 2" in details(both)[0]
    assert [one.split(":")[0] for one in details(both)[2:4]] == ["Listener l1", "Listener l2"]
    assert both.median.value == min(one.value for _, one in both.noticeable)


def test_rankings_and_opinions_are_worded_with_who_is_ahead() -> None:
    found = results.result(ranking_session((1.0, 0.0, -1.0), rounds=12))
    assert headline(found) == "place 1 was preferred to all others (with 100 % probability)."
    assert details(found)[0].startswith("36 comparisons, 0 ties")
    equal = results.result(ranking_session((0.0, 0.0, 0.0), rounds=2))
    assert headline(equal).startswith("No setting was shown to be preferred to all others; ")
    worse = results.result([one for n in range(6) for one in mos_session([(5, 3)] * 4, False, f"m{n}", f"l{n}")])
    assert headline(worse) == "Rated below baseline: DiTReducio δ = 0.2."
    assert "−2.00 (95 % interval" in details(worse)[0] and "48 votes by 6 listeners" in details(worse)[-1]
    alike = results.result(mos_session([(4, 4), (3, 4), (4, 3)]))
    assert headline(alike) == "No setting was shown to be rated otherwise than baseline."
    alone = [replace(one, planned=4) for one in mos_session([(4, 1)] * 4) if one.order == (0,)]
    assert headline(results.result(alone)).startswith("baseline: MOS 4.00 (95 % interval 4.00 to 4.00, n = 4)")


# --- Stimuli ----------------------------------------------------------------------------------------------------------
SEEDED = Setting("f5-mini", Values({"steps": 32}), seed=7)
SEEDED_REDUCED = SEEDED.with_technique(UsedTechnique("ditreducio", Values({"threshold": 0.2}), "a" * 16))
OTHER_TABLE = SEEDED.with_technique(UsedTechnique("ditreducio", Values({"threshold": 0.2}), "b" * 16))


def summary(take: str, setting: Setting, text: str = "One.", seed: int = 7, voice: str = "anna") -> TakeSummary:
    return TakeSummary(take, "2026", text, voice, replace(setting, seed=seed), 24000, 24000)


def test_a_condition_is_a_setting_whatever_its_seed() -> None:
    assert setting_key(SEEDED) == setting_key(replace(SEEDED, seed=99)) != setting_key(SEEDED_REDUCED)
    found = conditions([SEEDED, replace(SEEDED, seed=3), SEEDED_REDUCED, OTHER_TABLE])
    assert [one.accelerated for one in found] == [False, True, True]
    assert len({one.title for one in found}) == 3, "titles tell them apart"
    assert "steps 5" in conditions([replace(SEEDED, options=Values({"steps": 5}))])[0].title, "not the model's default"
    lost = conditions([Setting("gone").with_technique(UsedTechnique("lost"))])[0].title
    assert lost == "lost · gone", "a model and a technique that are no longer known"


def test_items_are_what_all_of_them_spoke_from_one_seed() -> None:
    takes = [
        summary("newer", SEEDED),
        summary("older", SEEDED),
        summary("fast", SEEDED_REDUCED),
        summary("alone", SEEDED, "Two."),
        summary("p3", SEEDED, "Three.", seed=1),
        summary("f3", SEEDED_REDUCED, "Three.", seed=2),
        summary("p4", SEEDED, "Four.", voice="bella"),
        summary("f4", SEEDED_REDUCED, "Four.", voice="bella"),
    ]
    found = items(takes, conditions([SEEDED_REDUCED, SEEDED]))
    assert [(one.text, one.takes) for one in found] == [("One.", ("fast", "newer")), ("Four.", ("f4", "p4"))]
    assert found[0].fingerprints == (SEEDED_REDUCED.fingerprint, SEEDED.fingerprint)


@pytest.fixture(scope="module")
def speech() -> np.ndarray:
    samples, _ = soundfile.read(voice().audio, dtype="float32")
    return samples


def _prepared(method: str, speech: np.ndarray, gains: tuple[float, ...] = (1.0, 0.3)) -> stimuli.PreparedItem:
    return _made(method, lambda take: (speech * np.float32(gains[int(take)]), 24000))


def _made(method: str, load: Callable[[str], tuple[np.ndarray, int]]) -> stimuli.PreparedItem:
    judged = conditions([SEEDED, SEEDED_REDUCED])
    item = items([summary("0", SEEDED), summary("1", SEEDED_REDUCED)], judged)[0]
    return prepared(item, judged, method, 48000, load)


def _spread(made: stimuli.PreparedItem) -> float:
    """How far apart the levels of its sounds are, in LU."""
    return float(np.ptp([integrated_loudness(one.amplified, 48000).lufs for one in made.stimuli]))


@pytest.mark.parametrize("method", [ABX, MUSHRA])
def test_everything_is_equally_loud_at_the_devices_rate(method: str, speech: np.ndarray) -> None:
    made = _prepared(method, speech)
    assert made.rate == 48000 and made.aligned and _spread(made) <= TOLERANCE_DECIBELS
    first = integrated_loudness(made.stimuli[0].amplified, 48000).lufs
    assert first == pytest.approx(made.target, abs=TOLERANCE_DECIBELS)
    assert max(true_peak(one.amplified) for one in made.stimuli) <= HIGHEST_PEAK + 0.05
    loud, quiet = made.stimuli[0].record, made.stimuli[1].record
    assert quiet.gain - loud.gain == pytest.approx(-20 * np.log10(0.3), abs=TOLERANCE_DECIBELS)
    assert loud.lufs + loud.gain == pytest.approx(made.target, abs=1e-3)


def test_similarity_is_rated_against_the_voices_recording_at_the_same_loudness(speech: np.ndarray) -> None:
    asked: list[str] = []

    def load(take: str) -> tuple[np.ndarray, int]:
        asked.append(take)
        return speech[: len(speech) // 2] * np.float32(0.1 if take.startswith("voice:") else 1.0), 24000

    made = _made(SIMILARITY, load)
    assert asked[-1] == f"voice:{made.record.voice}" and made.stimuli[-1].record.key == "voice"
    assert _spread(made) <= TOLERANCE_DECIBELS


def test_one_volume_holds_for_a_whole_test(speech: np.ndarray) -> None:
    loud, quiet, silent = (_prepared(ABX, speech, gains) for gains in ((1.0, 0.9), (0.3, 0.5), (0.0, 0.0)))
    assert loud.target > quiet.target + 3
    made = levelled([loud, quiet, silent])
    assert made[0].target == made[1].target == quiet.target
    assert made[1] == quiet
    for one in (stimulus for item in made[:2] for stimulus in item.stimuli):
        assert integrated_loudness(one.amplified, 48000).lufs == pytest.approx(quiet.target, abs=TOLERANCE_DECIBELS)
    assert made[2] == silent
    assert levelled([silent]) == (silent,)


def test_the_anchors_come_from_the_reference(speech: np.ndarray) -> None:
    made = _prepared(MUSHRA, speech, (1.0, 1.0))
    assert [one.record.key for one in made.stimuli][2:] == ["anchor35", "anchor70"]
    assert [one.record.take for one in made.stimuli] == ["0", "1", "", ""]
    window = np.hanning(len(made.stimuli[0].samples))
    spectra = [np.abs(np.fft.rfft(one.samples * window)) ** 2 for one in made.stimuli]
    frequencies = np.fft.rfftfreq(len(made.stimuli[0].samples), 1 / 48000)
    for spectrum, cutoff in ((spectra[2], 3500), (spectra[3], 7000)):
        assert spectrum[frequencies > cutoff + 600].sum() < 1e-5 * spectra[0][frequencies > cutoff + 600].sum()
        below = frequencies < cutoff - 200
        np.testing.assert_allclose(spectrum[below].sum(), spectra[0][below].sum(), rtol=0.03)


def test_mushra_refuses_long_sentences() -> None:
    with pytest.raises(RecordError, match=r"lasts 12\.5 s; MUSHRA allows 12 s"):
        _prepared(MUSHRA, np.random.default_rng(0).standard_normal(300000).astype(np.float32) * np.float32(0.1))


RATE = 48000


@pytest.mark.parametrize("make", [stimuli.noise, stimuli.tone])
def test_noise_and_tone_are_as_loud_as_the_test_and_repeat_without_a_seam(make) -> None:
    samples, target = make(RATE), -23.0
    heard = samples * np.float32(stimuli.gain(samples, RATE, target))
    assert integrated_loudness(heard, RATE).lufs == pytest.approx(target, abs=0.05) and true_peak(heard) < -1.0
    samples = make(44100)
    assert len(samples) == stimuli.SECONDS * 44100
    assert abs(samples[0] - samples[-1]) <= np.abs(np.diff(samples)).max()
    twice = np.abs(np.fft.rfft(np.tile(samples, 2)))
    assert twice[1::2].max() < 1e-3 * twice.max(), "two in a row hold no new frequencies"


def test_the_noise_is_pink_between_its_limits() -> None:
    power = np.abs(np.fft.rfft(stimuli.noise(RATE))) ** 2
    octaves = [power[low * stimuli.SECONDS : 2 * low * stimuli.SECONDS].sum() for low in (125, 250, 1000, 4000)]
    assert max(octaves) / min(octaves) == pytest.approx(1.0, abs=0.05)
    assert power[: 99 * stimuli.SECONDS].sum() < 1e-6 * power.sum()
    assert power[8001 * stimuli.SECONDS :].sum() < 1e-6 * power.sum()
