"""Figures from a trace of decoding, against counts made by hand."""

import math

import pytest

from paretone.measure.decoding import acceptance_by_position, drafting, running_tokens_per_pass, spoken_tokens
from paretone.measure.estimates import wilson_interval
from paretone.setting.take import ACCEPTED, BONUS, RESAMPLED, DecodingCycle, DecodingTrace

RATE = 50.0
FULL = DecodingCycle((1, 2, 3, 4), (1, 2, 3), 3, BONUS, (), 0.003, 0.009)
PARTLY = DecodingCycle((5, 9), (5, 6, 7), 1, RESAMPLED, (), 0.003, 0.005)
REFUSED = DecodingCycle((8,), (2, 2, 2), 0, RESAMPLED, (), 0.003, 0.005)
STOPPED = DecodingCycle((1,), (1, 1920), 2, BONUS, (), 0.002, 0.005)
"""The second draft was the stop, and was accepted: it is not among the tokens."""
TRACE = DecodingTrace(RATE, 1920, ((FULL, PARTLY), (REFUSED, STOPPED)), (0.0, 2.0), (True, False))
"""The first passage ran away, the second one ended."""
ALONE = tuple(DecodingCycle((one,), target_seconds=0.004 if one else 0.012) for one in range(8))
PLAIN = DecodingTrace(RATE, 1920, (ALONE,), (0.0,), (True,))
"""The first cycle of a passage reads the prompt."""


def test_every_token_has_its_time_its_fate_and_the_drafts_rejected_there() -> None:
    tokens = spoken_tokens(TRACE)
    assert [one.id for one in tokens] == [1, 2, 3, 4, 5, 9, 8, 1]
    assert [one.outcome for one in tokens] == [*[ACCEPTED] * 3, BONUS, ACCEPTED, RESAMPLED, RESAMPLED, ACCEPTED]
    assert [one.seconds for one in tokens] == pytest.approx([0, 0.02, 0.04, 0.06, 0.08, 0.1, 2.0, 2.02])
    assert [one.cycle for one in tokens] == [0, 0, 0, 0, 1, 1, 2, 3]
    assert [one.rejected for one in tokens] == [(), (), (), (), (), (6, 7), (2, 2, 2), ()]


def test_acceptance_counts_what_was_judged_and_what_was_proposed() -> None:
    first, second, third = acceptance_by_position(TRACE)
    assert (first.proposed, first.judged, first.accepted) == (4, 4, 3)
    assert (second.proposed, second.judged, second.accepted) == (4, 3, 2)
    assert (third.proposed, third.judged, third.accepted) == (3, 1, 1)
    assert (second.share, second.reached) == (pytest.approx(2 / 3), pytest.approx(2 / 4))
    assert second.interval == wilson_interval(2, 3)
    assert acceptance_by_position(PLAIN) == ()
    # A position that was never judged has no share.
    (_, second) = acceptance_by_position(DecodingTrace(RATE, 9, ((DecodingCycle((1,), (2, 2)),),), (0.0,), (True,)))
    assert math.isnan(second.share)
    assert second.reached == 0


def test_tokens_per_pass_and_the_speed_up_that_follows() -> None:
    found = drafting(TRACE)
    assert (found.tokens, found.stops, found.passes, found.drafted, found.accepted) == (8, 1, 4, 11, 6)
    assert found.tokens_per_pass == 2.25
    assert found.draft_length == 2.75
    assert (found.target_seconds, found.prompt_seconds) == (pytest.approx(0.020), pytest.approx(0.004))
    parts = found.parts_over(drafting(PLAIN))
    assert parts is not None
    assert (parts.draft, parts.verification, parts.prompt) == pytest.approx((0.25, 1.25, 0.25))
    assert parts.predicted == pytest.approx(2.25 / (1.25 + 2.75 * 0.25))
    # Together, the parts are the time that was measured.
    whole = parts.verification + parts.length * parts.draft + parts.prompt
    assert whole / parts.tokens == pytest.approx(found.seconds_per_token / 0.004)


def test_plain_decoding_is_its_own_measure() -> None:
    found = drafting(PLAIN)
    parts = found.parts_over(found)
    assert parts is not None and (parts.predicted, parts.draft, parts.prompt) == pytest.approx((1, 0, 0.25))
    assert found.parts_over(drafting(DecodingTrace(RATE, 9))) is None


def test_the_running_mean_goes_over_the_last_passes() -> None:
    seconds, means = running_tokens_per_pass(TRACE, window=2)
    assert seconds == pytest.approx((0.08, 0.12, 2.02, 2.04))
    assert means == pytest.approx((4, 3, 1.5, 1.5))
