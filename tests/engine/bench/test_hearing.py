"""Sentences that are heard one by one: the same verdicts as of all of them at once."""

from __future__ import annotations

import pytest

from paretone.bench.budget import Budget, Turns
from paretone.bench.hearing import heard_in_turns
from paretone.errors import PlainError
from paretone.measure.verdicts import ORIGINAL, Way, verdicts
from paretone.models import load_model
from paretone.models.catalogue import entry, voice
from paretone.setting.setting import Setting
from paretone.training.natural_teacher import original_speech
from tests.judges import only_words  # noqa: F401
from tests.prompts import short_prompts  # noqa: F401

pytestmark = [pytest.mark.usefixtures("short_prompts", "only_words"), pytest.mark.slow]
SENTENCES = ("The rice was good.", "They went home.", "It is late.")


def test_as_many_sentences_are_heard_as_there_is_time_for() -> None:
    pytest.importorskip("pocketsphinx")
    try:
        original_speech("Rice.", voice())
    except PlainError as error:
        pytest.skip(str(error))
    model = load_model("f5-mini", device="cpu")
    # Clear speech: of words at the edge of being understood, the judge's choice hangs on the last digits.
    ways = [Way("in haste", Setting("f5-mini", entry("f5-mini").options_with(steps=7)))]
    turns = Turns(Budget(1e-9, most=2), least=2)
    found = heard_in_turns(SENTENCES, [voice()], None, model, ways, turns)
    assert list(found) == [ORIGINAL, "in haste"]
    at_once = {one.speech: one for one in verdicts(SENTENCES, [voice()], None, model, ways)}
    for title, (one,) in found.items():
        whole = at_once[title].errors
        assert (one.errors.edits, one.errors.words) == (whole.edits[:2], whole.words[:2]), "there was time for two"
        assert one.errors.heard == whole.heard[:2], "the judge knows the words of the third as well"
        assert len(one.figures) == 2
    (spoken,) = found["in haste"]
    assert [one.trace.chunk_texts[0] for one in spoken.syntheses] == list(SENTENCES[:2])
