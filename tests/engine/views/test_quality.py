"""Which sentences a view judges."""

from __future__ import annotations

from paretone.models.base import Utterance
from paretone.models.catalogue import harvard_sentences, voice
from paretone.views.quality import judged_utterances


def test_the_selected_sentence_is_not_judged_for_something_may_be_calibrated_on_it() -> None:
    first, second, third = harvard_sentences()[:3]
    other = Utterance("Another sentence.", voice())
    assert [one.text for one in judged_utterances(other, 2)] == [first, second]
    selected = Utterance(f" {first}", voice("bella"))
    found = judged_utterances(selected, 30)
    assert [one.text for one in found[:2]] == [second, third] and len(found) == 30
    assert {one.voice.id for one in found} == {"bella"}
