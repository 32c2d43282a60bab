"""Quality of several ways of speaking: sentences spoken, compared and judged."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import numpy as np

from paretone.audio.spectrogram import drawn_or_heard
from paretone.errors import AudioError, PlainError
from paretone.measure.estimates import bootstrap, rate
from paretone.measure.evaluation.judges import Judge as Ear
from paretone.measure.evaluation.judges import JudgeKind, judge_named
from paretone.measure.fidelity import log_mel_distance
from paretone.measure.intelligibility import Judge, WordErrors
from paretone.models.base import SpeechModel, Synthesis, Utterance
from paretone.models.catalogue import judged_sentences
from paretone.setting.setting import Artefact, Setting
from paretone.speaking import synthesise
from paretone.views.figure import Axis
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


def speaker() -> JudgeKind:
    """The papers' judge of similarity if it is installed, else the bundled one."""
    of_papers = judge_named("similarity")
    return judge_named("voice") if of_papers.problem() else of_papers


def judges_of_papers() -> list[tuple[JudgeKind, Axis]]:
    """The judges of words and of similarity that are installed, with the axes of what they measure."""
    kinds = ((judge_named("words"), Axis("Word error rate", "%")), (speaker(), Axis("Speaker similarity")))
    return [one for one in kinds if not one[0].problem()]


def measured(ear: Ear, utterances: Sequence[Utterance], spoken: Sequence[Synthesis]) -> tuple[float, float, float]:
    """Word error rate in per cent or mean similarity, by the judge, with its 95 % bootstrap interval over sentences. A
    take without speech resembles nobody, and says none of its words."""
    found = []
    for one, said in zip(utterances, spoken, strict=True):
        try:
            figures = ear.hear(one.text, one.voice, said.samples, said.sample_rate).figures
        except AudioError:  # of judges of similarity
            figures = {"similarity": 0.0}
        if "words" in figures:
            found.append((100 * figures["edits"], figures["words"]))
        else:
            found.append((next(iter(figures.values())), 1.0))
    return bootstrap(rate, *np.array(found).T, draws=2000)
