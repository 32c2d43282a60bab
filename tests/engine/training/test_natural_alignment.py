from __future__ import annotations

import pytest
import torch

from paretone.front_end.natural.phones import words
from paretone.training.natural_corpus import AlignmentOptions, drawn_alignment, evened
from tests.engine.training.toy_natural import toy_natural_corpus

PHONES = toy_natural_corpus().training[0].phones
EXACT, INEXACT, BY_WORD = (
    AlignmentOptions(exact_until=0.5, inexact_share=inexact, evened_share=spread)
    for inexact, spread in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))
)


@pytest.mark.parametrize("options", [EXACT, INEXACT, BY_WORD])
def test_at_first_every_phone_is_at_its_own_frames(options: AlignmentOptions):
    assert drawn_alignment(options, 0.4, torch.Generator())(PHONES) == PHONES


def test_later_text_is_aligned_exactly_inexactly_or_by_word():
    generator = torch.Generator().manual_seed(0)
    assert drawn_alignment(EXACT, 0.6, generator)(PHONES) == PHONES
    assert drawn_alignment(BY_WORD, 0.6, generator)(PHONES) == evened(PHONES) != PHONES
    aligned = drawn_alignment(INEXACT, 0.6, generator)
    assert len({PHONES, aligned(PHONES), aligned(PHONES)}) == 3


def test_words_keep_their_places_and_every_phone_its_name():
    inexact = drawn_alignment(INEXACT, 0.6, torch.Generator().manual_seed(1))(PHONES)
    inside = {place for word in words(PHONES) for place in word}
    for word in words(PHONES):
        first, last = word[0], word[-1]
        assert (inexact[first][1], inexact[last][2]) == pytest.approx((PHONES[first][1], PHONES[last][2]))
    for place, (one, other) in enumerate(zip(inexact, PHONES, strict=True)):
        assert one[0] == other[0]
        assert place in inside or one == other


def test_shares_are_those_of_the_options():
    generator = torch.Generator().manual_seed(0)
    options = AlignmentOptions(exact_until=0.0, inexact_share=0.3, evened_share=0.5)
    drawn = [drawn_alignment(options, 0.0, generator)(PHONES) for _ in range(300)]
    assert sum(one == evened(PHONES) for one in drawn) / 300 == pytest.approx(0.5, abs=0.1)
    assert sum(one == PHONES for one in drawn) / 300 == pytest.approx(0.2, abs=0.08)
