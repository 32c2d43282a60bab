"""How text is aligned in trainings of bundled models, and what errors of their speech weigh."""

import pytest
import torch

from paretone.front_end.phones import words
from paretone.models.minis.natural_decoder import PITCH, VOICE, VOICING, NaturalDecoder
from paretone.training.natural_corpus import voice_frames
from tests.engine.training.toy_natural import toy_natural_clip, toy_natural_corpus
from tests.tools.recipes.alignments import AlignmentOptions, drawn_alignment, evened
from tests.tools.recipes.bundled_recipe import frame_error, spectral_error

PHONES = toy_natural_corpus().training[0].phones
EXACT, INEXACT, BY_WORD = (
    AlignmentOptions(exact_until=0.5, inexact_share=inexact, evened_share=spread)
    for inexact, spread in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))
)


def test_later_text_is_aligned_exactly_inexactly_or_by_word():
    generator = torch.Generator().manual_seed(0)
    assert drawn_alignment(INEXACT, 0.4, generator)(PHONES) == PHONES, "at first, every phone is at its own frames"
    assert drawn_alignment(EXACT, 0.6, generator)(PHONES) == PHONES
    assert drawn_alignment(BY_WORD, 0.6, generator)(PHONES) == evened(PHONES) != PHONES
    aligned = drawn_alignment(INEXACT, 0.6, generator)
    assert len({PHONES, aligned(PHONES), aligned(PHONES)}) == 3
    inexact = drawn_alignment(INEXACT, 0.6, torch.Generator().manual_seed(1))(PHONES)
    inside = {place for word in words(PHONES) for place in word}
    for word in words(PHONES):
        first, last = word[0], word[-1]
        assert (inexact[first][1], inexact[last][2]) == pytest.approx((PHONES[first][1], PHONES[last][2]))
    for place, (one, other) in enumerate(zip(inexact, PHONES, strict=True)):
        assert one[0] == other[0]
        assert place in inside or one == other


# --- Errors as they are heard -----------------------------------------------------------------------------------------
def test_errors_weigh_as_what_is_heard_of_them():
    decoder = NaturalDecoder.load()
    wanted = voice_frames(toy_natural_clip(0, 3, 40))[None]
    wanted[:, :20, VOICING], wanted[:, 20:, VOICING] = 1.0, -1.0
    made = wanted.clone()
    made[:, :, PITCH] += 1.0
    assert float(frame_error(made, wanted, 4.0)) == pytest.approx((4.0 + 1) / 2 / VOICE)
    assert float(spectral_error(decoder, made, wanted)) == 0
    first, last = wanted.clone(), wanted.clone()
    first[:, :, 0] += 1.0
    last[:, :, 31] += 1.0
    assert float(spectral_error(decoder, first, wanted)) > float(spectral_error(decoder, last, wanted)) > 0
