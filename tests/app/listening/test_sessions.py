"""Sessions of ABX, preference and MUSHRA: what is asked, in which order, and what counts."""

import random
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from paretone.listening.trials import (
    ABX,
    CCR,
    MUSHRA,
    NATURALNESS,
    PREFERENCE,
    RANKING,
    SIMILARITY,
    ItemRecord,
    RecordError,
    TrialConditions,
)
from paretone_app.listening.abx import AbxSession
from paretone_app.listening.mos import MosSession
from paretone_app.listening.mushra import MushraSession
from paretone_app.listening.preference import FIRST, SECOND, PreferenceSession, RankingSession
from paretone_app.listening.staircase import A, B, StaircaseSession
from paretone_app.listening.stimuli import PreparedItem, Stimulus
from tests.engine.listening.listeners import BASELINE, FAST, LOW, MID, RECORDING

CALM = TrialConditions(1000, 0, "Speaker", 0.2)
DISTURBED = TrialConditions(1000, 1, "Speaker", 0.2)


def prepared(*records, text: str = "A sentence.") -> PreparedItem:
    stimuli = tuple(Stimulus(one, np.zeros(10, np.float32)) for one in records)
    return PreparedItem(ItemRecord(text, "anna", 7), stimuli, 48000, True, -23.0, True)


def pairs(count: int, *more) -> list[PreparedItem]:
    return [prepared(BASELINE, FAST, *more, text=f"Sentence {number}.") for number in range(count)]


def pages(count: int) -> list[PreparedItem]:
    return pairs(count, LOW, MID)


def rows(count: int, places: int = 3) -> list[PreparedItem]:
    return pairs(count, *(replace(FAST, key=f"{one:016x}") for one in range(1, places)))


def chance(seed: int = 0) -> random.Random:
    return random.Random(seed)


# --- MOS -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("method", "more"), [(NATURALNESS, ()), (SIMILARITY, (RECORDING,))])
def test_every_sound_of_a_sentence_is_rated_once_in_random_order(method: str, more: tuple) -> None:
    items = pairs(4, *more)
    session = MosSession(items, "l", method, 8, chance(), practice=1)
    assert session.planned == 8 and len(session.practice) == 1
    asked = []
    while not session.finished:
        assert len(session.trial.order) == 1 + len(more)
        for button in range(len(session.trial.order)):
            assert "to the end first" in session.why_not_answer()
            session.hear(button)
            session.heard_whole.add(button)
        assert not session.why_not_answer()
        practising = session.practising
        record = session.answer(4, CALM)
        assert (record is None) == practising
        asked += [] if record is None else [(record.item.text, record.order)]
    against = (2,) if more else ()
    assert sorted(asked) == [(f"Sentence {n}.", (*against, place)) for n in range(4) for place in range(2)]
    assert asked != sorted(asked)
    with pytest.raises(ValueError, match="no vote"):
        MosSession(items, "l", method, 8).answer(6, CALM)
    with pytest.raises(RecordError, match="speech to the end"):
        MosSession(items, "l", method, 8).answer(5, CALM)


# --- ABX -------------------------------------------------------------------------------------------------------------
def test_x_is_drawn_by_the_operating_system_and_is_fair(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(secrets, "SystemRandom", chance)
        by_system, expected = (AbxSession(pairs(1), "l", ABX, 50, *given).waiting for given in ((), (chance(),)))
    assert [one.order for one in by_system] == [one.order for one in expected]
    drawn = Counter(one.order[2] for run in range(40) for one in AbxSession(pairs(1), "l", ABX, 50).waiting)
    # Of 2000 fair draws, 1000 and some six standard deviations at most.
    assert abs(drawn[0] - 1000) < 135
    assert drawn[0] + drawn[1] == 2000


def test_an_abx_session_asks_as_often_as_was_fixed_and_about_all_sentences() -> None:
    session = AbxSession(pairs(5), "l", ABX, 16, chance())
    asked = []
    while not session.finished:
        asked.append(session.trial.item)
        assert session.trial.order[:2] == (0, 1)
        text, x = session.item.record.text, session.trial.order[2]
        session.hear(2)
        record = session.answer(0, CALM)
        assert (record.item.text, record.order[2]) == (text, x)
    assert len(asked) == session.planned == session.valid == 16
    assert sorted(Counter(asked).values()) == [3, 3, 3, 3, 4]
    assert [(one.number, one.planned) for one in session.records] == [(number, 16) for number in range(1, 17)]


def test_x_has_to_be_heard_before_it_is_judged() -> None:
    session = AbxSession(pairs(1), "l", ABX, 4, chance())
    session.hear(0)
    with pytest.raises(RecordError, match="Listen to X"):
        session.answer(0, CALM)
    session.hear(2)
    assert session.why_not_answer() == ""
    session.answer(1, CALM)
    assert session.why_not_answer(), "every trial anew"
    # Switches are counted by trial.
    for button in (0, 1, 1, 2, 0):
        session.hear(button)
    assert session.answer(0, CALM).switches == 3
    session.hear(2)
    assert session.answer(0, CALM).switches == 0
    with pytest.raises(ValueError, match="no button 3"):
        AbxSession(pairs(1), "l", ABX, 16).hear(3)


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (lambda: AbxSession(pages(1), "l", ABX, 16), "exactly two"),
        (lambda: AbxSession([], "l", ABX, 16), "No sentence"),
        (lambda: MushraSession([prepared(*[BASELINE] * 13)], "l", MUSHRA), "12 sounds at most"),
        (lambda: RankingSession(pairs(2), "l", RANKING, 3), "3 to 12 settings"),
    ],
)
def test_what_makes_no_session_is_said(refused: Callable[[], object], why: str) -> None:
    with pytest.raises(RecordError, match=why):
        refused()


def test_an_interrupted_trial_is_void_recorded_and_asked_again_with_a_new_x() -> None:
    xs = set()
    for seed in range(20):
        session = AbxSession(pairs(3), "l", ABX, 3, chance(seed))
        item = session.trial.item
        session.hear(2)
        record = session.answer(0, DISTURBED)
        assert record.void
        assert (session.valid, session.void, session.planned) == (0, 1, 3)
        assert session.waiting[-1].item == item
        xs.add((record.order[2], session.waiting[-1].order[2]))
        while not session.finished:
            session.hear(2)
            session.answer(0, CALM)
        assert (session.valid, len(session.records)) == (3, 4)
    assert len(xs) == 4, "the new X does not depend on the old one"


# --- Preference ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("sentences", "trials"), [(10, 10), (1, 8), (5, 11)])
def test_orders_are_balanced_and_a_tenth_is_repeated_swapped(sentences: int, trials: int) -> None:
    for seed in range(10):
        asked = list(PreferenceSession(pairs(sentences), "l", CCR, trials, chance=chance(seed)).waiting)
        own, again = ([one for one in asked if one.repeat is repeat] for repeat in (False, True))
        assert (len(own), len(again)) == (trials, -(-trials // 10))
        for inside in (range(sentences), *((item,) for item in range(sentences))):
            orders = Counter(one.order for one in own if one.item in inside)
            assert abs(orders[0, 1] - orders[1, 0]) <= 1
        for one in again:
            before = [other for other in asked[: asked.index(one)] if other.item == one.item]
            assert any(other.order == one.order[::-1] and not other.repeat for other in before)


def test_both_have_to_be_heard_to_the_end() -> None:
    session = PreferenceSession(pairs(2), "l", CCR, 2, chance=chance())
    session.hear(FIRST)
    session.hear(SECOND)
    assert "the first and the second" in session.why_not_answer()
    session.heard_whole.add(FIRST)
    assert session.why_not_answer() == "Listen to the second to the end first."
    session.heard_whole.add(SECOND)
    assert session.answer(-3, CALM).answer == {"vote": -3}
    plain = PreferenceSession(pairs(2), "l", PREFERENCE, 2, chance=chance())
    assert (plain.method, sorted(plain.votes)) == ("preference", [-1, 0, 1])
    plain.heard_whole.update((FIRST, SECOND))
    with pytest.raises(ValueError, match="no vote 2"):
        plain.answer(2, CALM)


# --- MUSHRA ----------------------------------------------------------------------------------------------------------
def _rate_all(session: MushraSession, scores: dict[int, int]) -> None:
    session.hear(0)
    for button in session.sliders:
        session.hear(button)
        session.rate(button, scores[session.trial.order[button]])


def test_only_what_is_heard_can_be_rated_and_a_page_is_done_once_all_is() -> None:
    session = MushraSession(pages(1), "l", MUSHRA, chance=chance())
    for button in (1, 0, 2):
        with pytest.raises(RecordError, match="Only the sound"):
            session.rate(button, 50)
        session.hear(1)
        session.rate(1, 50)
    with pytest.raises(ValueError, match="between 0 and 100"):
        session.rate(1, 101)
    assert session.why_not_answer() == "Listen to the reference first."
    session.hear(0)
    assert not session.may_rate(0), "the labelled reference has no slider"
    assert session.why_not_answer() == "Still to be rated: 2, 3, 4."
    with pytest.raises(RecordError, match="Still to be rated"):
        session.answer(CALM)
    _rate_all(session, {0: 100, 1: 80, 2: 10, 3: 40})
    session.answer(CALM)
    assert session.finished


def test_every_sound_has_one_slider_and_places_differ_from_page_to_page() -> None:
    session = MushraSession(pages(12), "l", MUSHRA, chance=chance())
    orders = []
    while not session.finished:
        orders.append(session.trial.order)
        assert orders[-1][0] == 0 and sorted(orders[-1][1:]) == [0, 1, 2, 3]
        _rate_all(session, {0: 100, 1: 80, 2: 10, 3: 40})
        record = session.answer(CALM)
        assert record.answer == {"ratings": [100, 80, 10, 40]}, "by stimulus, wherever its slider was"
    assert len(set(orders)) > 3
    texts, sentences = [one.item.text for one in session.records], [f"Sentence {number}." for number in range(12)]
    assert set(texts) == set(sentences) and texts != sentences


# --- Practice --------------------------------------------------------------------------------------------------------
def test_practice_comes_first_and_counts_for_nothing() -> None:
    session = AbxSession(pairs(3), "l", ABX, 4, chance(), practice=2)
    assert (session.planned, len(session.practice), session.practising) == (4, 2, True)
    for number in (1, 2):
        x = session.trial.order[2]
        session.hear(2)
        assert session.answer(0, DISTURBED) is None, "not even void"
        assert session.taught == f"X was {'AB'[x]}: {'wrong' if x else 'right'}."
        assert session.practised == number
    assert not session.practising
    assert (session.valid, session.void, session.records) == (0, 0, [])
    session.hear(2)
    assert session.answer(0, CALM).number == 1
    assert session.taught == "", "nothing is told of what counts"


# --- Staircase -------------------------------------------------------------------------------------------------------
SCALE = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)


def _tell(session: StaircaseSession, right: bool, around: TrialConditions = CALM):
    """Hear A and B, and say which is not the reference, or the wrong one."""
    session.hear(A)
    session.hear(B)
    other = 0 if session.trial.order[A] else 1
    return session.answer(other if right else 1 - other, around)


def test_a_staircase_goes_where_the_answers_lead() -> None:
    session = StaircaseSession(rows(3, 7), "l", SCALE, 12, chance=chance())
    places = []
    while not session.finished:
        places.append(max(session.trial.order))
        record = _tell(session, right=len(places) not in (7, 8))
        assert record.answer["scale"] == list(SCALE) and record.order[0] == 0
    assert places == [7, 7, 7, 5, 5, 5, 3, 4, 5, 5, 5, 4], "steps of 2, 1 after the first turn"
    assert len(session.records) == session.planned == 12
    assert {one.item.text for one in session.records} == {"Sentence 0.", "Sentence 1.", "Sentence 2."}


def test_a_void_trial_moves_nothing_and_comes_again() -> None:
    session = StaircaseSession(rows(1, 7), "l", SCALE, 4, chance=chance())
    for _ in range(3):
        assert _tell(session, right=True, around=DISTURBED).void
        assert max(session.trial.order) == 7
    for _ in range(3):
        _tell(session, right=True)
    assert max(session.trial.order) == 5
    assert session.void == 3 and not session.finished
    _tell(session, right=True)
    assert session.finished and session.valid == 4


def test_a_staircase_is_practised_at_its_far_end_and_needs_both_to_be_heard() -> None:
    session = StaircaseSession(rows(2, 7), "l", SCALE, 3, chance=chance(), practice=4)
    for _ in range(4):
        assert session.practising and max(session.trial.order) == 7
        assert session.why_not_answer() == "Listen to A and B first."
        session.hear(A)
        with pytest.raises(RecordError, match="Listen to B first"):
            session.answer(0, CALM)
        assert _tell(session, right=True) is None
        assert session.taught.endswith("right.")
    assert not session.practising and max(session.trial.order) == 7 and not session.records
    with pytest.raises(ValueError, match="not 2"):
        session.answer(2, CALM)
    with pytest.raises(RecordError, match="every setting of its row"):
        StaircaseSession(rows(1, 3), "l", SCALE)


# --- Ranking ----------------------------------------------------------------------------------------------------------
def test_a_ranking_asks_for_every_pair_before_any_comes_again() -> None:
    session = RankingSession(rows(4, places=3), "l", RANKING, 18, chance())
    asked = [one.order for one in session.waiting]
    assert len(asked) == 18
    for first in range(0, 18, 6):
        each = {frozenset((one, two)) for one in range(4) for two in range(one)}
        assert set(map(frozenset, asked[first : first + 6])) == each
    assert {one.item for one in session.waiting} == set(range(4))
    assert 0.2 < sum(one < two for one, two in asked) / 18 < 0.8, "either may come first"
