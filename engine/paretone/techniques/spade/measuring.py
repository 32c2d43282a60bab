"""Measurement of the importance of each layer of a loaded language model: by its own tokens, and by a judge's word
errors.

Teacher-forced: the model speaks the utterances once; then it reads its own speech again without each layer in turn, and
its predictions are compared. By ear: it speaks the utterances without each layer in turn, and a judge limited to their
texts transcribes them (SPADE's WLI). Runaway speech is stopped by the guard, as always, and counted.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.errors import SettingError
from paretone.measure.intelligibility import Judge, WordErrors
from paretone.measure.machine import describe
from paretone.models.base import Synthesis, Utterance
from paretone.models.families.language import LanguageSpeech
from paretone.models.files.layer_importance import (
    COSINE,
    DIVERGENCE,
    MEASURES,
    WORD_ERROR,
    ImportanceRecord,
    LayerImportance,
)
from paretone.observer import Observer
from paretone.sampling.autoregressive import places
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import scripted, synthesise
from paretone.techniques.spade import NAME, NONE
from paretone.techniques.spade.importance import bootstrapped
from paretone.training.token_recipe import each_divergence


def measure_layers(
    model: LanguageSpeech,
    utterances: Sequence[Utterance],
    setting: Setting,
    measures: Sequence[str],
    observer: Observer,
    earlier: ImportanceRecord | None = None,
) -> ImportanceRecord:
    """Take ``measures`` of all layers under the options and the seed of ``setting``. Other measures of ``earlier`` are
    kept.

    Raises :class:`SettingError` for an unknown measure, :class:`paretone.errors.PlainError` without the judge, and
    :class:`paretone.errors.Cancelled`.
    """
    unknown = [one for one in measures if one not in MEASURES]
    if unknown or not measures or not utterances:
        raise SettingError(
            f"Layers are measured by {', '.join(MEASURES)} on at least one utterance, not by {unknown or 'nothing'}."
        )
    started = time.perf_counter()
    plain = replace(setting, techniques=())
    taken = []
    if {DIVERGENCE, COSINE} & set(measures):
        observer.status(f"Speaking {len(utterances)} utterances with {model.info.title}")
        spoken = own_speech(model, utterances, plain, observer)
        if DIVERGENCE in measures:
            observer.status("Leaving out one layer after another")
            taken.append(skipping_divergence(model, spoken, observer))
        if COSINE in measures:
            taken.append(turning(model, spoken, observer))
    if WORD_ERROR in measures:
        observer.status("Speaking without one layer after another")
        taken.append(word_errors_without(model, utterances, plain, observer))
    record = earlier or ImportanceRecord(model.info.id, model.info.fingerprint, model.info.layers, ())
    for one in taken:
        record = record.with_measure(one)
    return replace(
        record,
        seed=setting.seed,
        seconds=time.perf_counter() - started,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=describe().line,
    )


@dataclass(frozen=True)
class Forced:
    """One passage, for reading in one pass."""

    embedded: Tensor
    """(1, T, hidden): the prompt, then the model's own tokens."""
    positions: Tensor
    """(T,)."""
    prompt: int
    """Number of elements of the prompt. From the last one on, every element predicts a token."""


@torch.inference_mode()
def own_speech(
    model: LanguageSpeech, utterances: Sequence[Utterance], setting: Setting, observer: Observer
) -> list[list[Forced]]:
    """The model's own speech for each utterance, passage by passage."""
    spoken = []
    for number, one in enumerate(utterances):
        observer.progress(number, len(utterances))
        passages = []
        for request, decoding in model.decodings(scripted(model, one.text, one.voice, setting), observer.check):
            tokens = [token for cycle in decoding for token in cycle.tokens]
            if tokens:
                embedded = torch.cat([request.embedded, model.own.tokens.embed(tokens)[None]], dim=1)
                passages.append(Forced(embedded, places(request, len(tokens)), request.embedded.shape[1]))
        if passages:
            spoken.append(passages)
    if not spoken:
        raise SettingError(f"{model.info.title} said nothing at all; measure with other utterances or another seed.")
    return spoken


@torch.inference_mode()
def skipping_divergence(
    model: LanguageSpeech, spoken: Sequence[Sequence[Forced]], observer: Observer
) -> LayerImportance:
    """KL divergence (nats) between the predictions with all layers and without each, mean over tokens."""
    tokens, layers = model.own.tokens, model.info.layers

    def predicted(one: Forced, skip: frozenset[int] = frozenset()) -> Tensor:
        hidden = tokens.transformer(one.embedded, None, one.positions, skip=skip)
        return tokens.logits(hidden[0, one.prompt - 1 :])

    each = np.zeros((len(spoken), layers))
    for number, passages in enumerate(spoken):
        wanted = [predicted(one) for one in passages]
        for layer in range(layers):
            observer.progress(number * layers + layer, len(spoken) * layers)
            apart = [
                each_divergence(predicted(one, frozenset((layer,))), whole_one)
                for one, whole_one in zip(passages, wanted, strict=True)
            ]
            each[number, layer] = torch.cat(apart).mean()
    return bootstrapped(DIVERGENCE, each)


@torch.inference_mode()
def turning(model: LanguageSpeech, spoken: Sequence[Sequence[Forced]], observer: Observer) -> LayerImportance:
    """One minus the cosine between a layer's input and output, mean over elements."""
    layers = model.info.layers
    each = np.zeros((len(spoken), layers))
    for number, passages in enumerate(spoken):
        observer.check()
        turned: list[list[Tensor]] = [[] for _ in range(layers)]
        for one in passages:
            states = [one.embedded[0]]
            model.own.tokens.transformer(
                one.embedded, None, one.positions, lambda layer, what, value, kept=states: kept.append(value[0].clone())
            )
            for layer in range(layers):
                turned[layer].append(1 - F.cosine_similarity(states[layer], states[layer + 1], dim=-1))
        each[number] = [float(torch.cat(one).mean()) for one in turned]
    return bootstrapped(COSINE, each)


def word_errors_without(
    model: LanguageSpeech, utterances: Sequence[Utterance], setting: Setting, observer: Observer
) -> LayerImportance:
    """WLI: word error rate without each layer. Raises :class:`paretone.errors.PlainError` if the judge is missing."""
    layers = model.info.layers
    sentences = [one.text for one in utterances]
    judge = Judge(sentences)
    done = 0

    def heard(way: Setting) -> tuple[WordErrors, int]:
        nonlocal done
        spoken: list[Synthesis] = []
        for one in utterances:
            observer.progress(done, (layers + 1) * len(utterances))
            spoken.append(synthesise(model, one.text, one.voice, way, (), observer))
            done += 1
        errors = judge.word_errors(sentences, [(one.samples, one.sample_rate) for one in spoken])
        return errors, sum(any(one.trace.decoding.run_away) for one in spoken if one.trace.decoding is not None)

    with_all, _ = heard(setting)
    found = [heard(without(setting, layer, layers)) for layer in range(layers)]
    words = np.array(with_all.words)
    each = np.array([one.edits for one, _ in found]).T / words[:, None]
    importance = bootstrapped(WORD_ERROR, each, words, baseline=with_all.rate)
    return replace(importance, run_away=tuple(count for _, count in found))


def without(setting: Setting, layer: int, layers: int) -> Setting:
    """``setting`` with all ``layers`` but one, without retraining."""
    kept = ",".join(str(one) for one in range(layers) if one != layer)
    return setting.with_technique(UsedTechnique(NAME, Values(recovery=NONE, layers=kept)))
