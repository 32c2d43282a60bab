from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from paretone.audio.resampling import resample
from paretone.errors import PlainError
from paretone.measure.intelligibility import Judge
from paretone.measure.verdicts import ORIGINAL, VOCODER_ONLY, Way, counted_errors, judged_means, verdicts
from paretone.models import load_model
from paretone.models.base import Synthesis, Voice
from paretone.models.catalogue import entry, harvard_sentences, voice
from paretone.models.loading import load_vocoder
from paretone.setting.setting import Setting
from paretone.techniques.resolving import known
from paretone.training.natural_teacher import original_speech
from tests.workload import only_in_full, workload

pytestmark = [pytest.mark.usefixtures("short_prompts"), pytest.mark.slow]


@pytest.fixture(scope="module", autouse=True)
def speakers() -> None:
    """Who speaks in the voices is installed."""
    for model in ("f5-mini", "lm-mini"):
        try:
            original_speech("Rice.", voice("", model))
        except PlainError as error:
            pytest.skip(str(error))


SENTENCES = harvard_sentences()[: workload(2, 1)]


@only_in_full("speech")
def test_the_original_its_copy_and_every_way_of_the_model_are_judged() -> None:
    pytest.importorskip("pocketsphinx")
    options = entry("f5-mini").options_with
    ways = [Way(name, Setting("f5-mini", options(steps=count))) for name, count in (("seven steps", 7), ("hasty", 1))]
    model, vocoder, said = load_model("f5-mini", device="cpu"), load_vocoder(entry("f5-mini").vocoder_folder), []
    found = list(verdicts(SENTENCES, [voice()], vocoder, model, ways, said.append))
    assert [one.speech for one in found] == [ORIGINAL, VOCODER_ONLY, "seven steps", "hasty"]
    assert all(one.voice == voice().id and len(one.errors.words) == len(SENTENCES) for one in found)
    original, copied, spoken, hasty = found
    assert original.errors.rate < 0.2 and max(copied.errors.rate, spoken.errors.rate) < 0.3
    for one in (spoken, hasty):
        recordings = [(synthesis.samples, synthesis.sample_rate) for synthesis in one.syntheses]
        assert Judge(SENTENCES).word_errors(SENTENCES, recordings) == one.errors
    assert not original.syntheses and not copied.syntheses
    assert [one.trace.chunk_texts[0] for one in spoken.syntheses] == list(SENTENCES)
    assert not np.array_equal(spoken.syntheses[0].samples, hasty.syntheses[0].samples)
    assert len(said) == 3
    for one in found:
        assert all(0 < figures["pitch_range"] < 0.5 for figures in one.figures)
    means = judged_means([original])
    assert means["pitch range"] == pytest.approx(np.mean([one["pitch_range"] for one in original.figures]))
    assert means["pitch range ±"] >= 0
    assert counted_errors([original]) == {
        "word error rate": original.errors.rate,
        "errors": sum(original.errors.edits),
        "words": sum(original.errors.words),
        **means,
    }
    silent = replace(original, figures=({},) * len(SENTENCES))
    assert judged_means([silent]) == {}, "not every sentence was measured"
    assert judged_means([original, silent]) == pytest.approx(means)
    if find_spec("distillmos") is not None:
        assert 1 < means["naturalness"] < 5


class Original:
    """The voice's own speaker, at the rate that LLaSA speaks at."""

    rate = 16_000
    info = known("f5-mini")

    def script(self, text: str, voice: Voice, *_: object) -> tuple[str, Voice]:
        return text, voice

    def speak(self, script: tuple[str, Voice], *_: object) -> Synthesis:
        return Synthesis(resample(original_speech(*script), 24_000, self.rate), self.rate)


@pytest.mark.usefixtures("only_words")
def test_a_take_is_judged_at_its_own_rate() -> None:
    pytest.importorskip("pocketsphinx")
    ways = [Way("original", Setting("f5-mini"))]
    *_, spoken = verdicts(SENTENCES, [voice()], load_vocoder(entry("f5-mini").vocoder_folder), Original(), ways)
    assert spoken.errors.rate < 0.2
    assert Judge(SENTENCES).word_errors(SENTENCES, [(one.samples, 24_000) for one in spoken.syntheses]).rate > 0.5
