"""Quality of several ways of speaking: sentences spoken, compared and judged."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from paretone.audio.spectrogram import drawn_or_heard
from paretone.errors import PlainError
from paretone.measure.fidelity import log_mel_distance
from paretone.measure.intelligibility import Judge, WordErrors
from paretone.models.base import SpeechModel, Synthesis, Utterance
from paretone.models.catalogue import judged_sentences
from paretone.setting.setting import Artefact, Setting
from paretone.speaking import synthesise
from paretone.views.view import Stages


def judged_utterances(utterance: Utterance, count: int) -> tuple[Utterance, ...]:
    """The first Harvard sentences in the voice of ``utterance``, without its own sentence, which may be used for
    calibration; no model here was trained on them."""
    others = [text for text in judged_sentences() if text != utterance.text.strip()]
    return tuple(Utterance(text, utterance.voice) for text in others[:count])


def speak_all(
    model: SpeechModel,
    utterances: Sequence[Utterance],
    setting: Setting,
    work: Stages,
    units: float,
    title: str,
    artefacts: tuple[Artefact, ...] = (),
) -> list[Synthesis]:
    spoken = []
    for number, one in enumerate(utterances, start=1):
        observer = work.part(units, f"{title}: sentence {number} of {len(utterances)}")
        spoken.append(synthesise(model, one.text, one.voice, setting, artefacts, observer))
    return spoken


def distance(reference: Sequence[Synthesis], others: Sequence[Synthesis]) -> float:
    """Mean log-mel distance between syntheses of the same sentences, in natural-log units."""
    mels = (
        [drawn_or_heard(one.trace.mel, one.samples, one.sample_rate) for one in some] for some in (reference, others)
    )
    return fmean(log_mel_distance(*pair) for pair in zip(*mels, strict=True))


def judge_of(utterances: Sequence[Utterance]) -> Judge | None:
    """Recogniser limited to these sentences, or ``None`` if none is installed."""
    try:
        return Judge([one.text for one in utterances])
    except PlainError:
        return None


def word_errors(judge: Judge, utterances: Sequence[Utterance], spoken: Sequence[Synthesis]) -> WordErrors:
    recordings = [(one.samples, one.sample_rate) for one in spoken]
    return judge.word_errors([one.text for one in utterances], recordings)
