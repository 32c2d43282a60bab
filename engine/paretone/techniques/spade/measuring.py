"""Measurement of each layer's importance in a loaded language model: by its own tokens, and by a judge's word errors.

Teacher-forced: the model speaks the utterances once; then it reads its own speech again without each layer in turn, and
its predictions are compared. By ear: it speaks the utterances without each layer in turn, and a judge limited to their
texts, or Whisper as in the paper, transcribes them (SPADE's WLI). Runaway speech is stopped by the guard, as always,
and counted. What was heard is kept until the end, so that an interrupted measurement goes on.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.errors import SettingError
from paretone.files import write_atomically
from paretone.measure.evaluation.judges import judge_named
from paretone.measure.machine import describe
from paretone.models.base import Utterance
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
from paretone.reading import parsed_json, read_text
from paretone.sampling.autoregressive import places
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import scripted, synthesise
from paretone.techniques.spade import NAME, NONE, WORDS
from paretone.techniques.spade.importance import bootstrapped
from paretone.training.token_recipe import each_divergence


def measure_layers(
    model: LanguageSpeech,
    utterances: Sequence[Utterance],
    setting: Setting,
    measures: Sequence[str],
    observer: Observer,
    earlier: ImportanceRecord | None = None,
    judge: str = WORDS,
    unfinished: Path | None = None,
) -> ImportanceRecord:
    """Take ``measures`` of all layers under the options and the seed of ``setting``. Other measures of ``earlier`` are
    kept. ``judge`` hears word errors; the folder ``unfinished`` keeps them if the measurement is interrupted. Raises
    :class:`SettingError` for an unknown measure, :class:`paretone.errors.PlainError` without the judge, and
    :class:`paretone.errors.Cancelled`."""
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
        observer.status(f"Speaking {len(utterances)} utterances without one layer after another")
        taken.append(word_errors_without(model, utterances, plain, observer, judge, unfinished))
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
            own = model.own.tokens
            said = [
                own.embed(cycle.tokens) if cycle.embedded is None else cycle.embedded
                for cycle in decoding
                if cycle.tokens
            ]
            if said:
                embedded = torch.cat([request.embedded[0], *said])[None]
                tokens = embedded.shape[1] - request.embedded.shape[1]
                passages.append(Forced(embedded, places(request, tokens), request.embedded.shape[1]))
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
    model: LanguageSpeech,
    utterances: Sequence[Utterance],
    setting: Setting,
    observer: Observer,
    judge: str = WORDS,
    unfinished: Path | None = None,
) -> LayerImportance:
    """WLI: word error rate without each layer. Raises :class:`paretone.errors.PlainError` if the judge is missing."""
    layers, count = model.info.layers, len(utterances)
    ear = judge_named(judge).ready([one.text for one in utterances], model.info.device_type or "cpu")
    ways = [setting, *(without(setting, layer, layers) for layer in range(layers))]
    kept = _Kept(unfinished, [model.info.all_weights, judge, setting.fingerprint, setting.seed, utterances])

    def heard(way: int, number: int) -> list[float]:
        one = utterances[number]
        spoken = synthesise(model, one.text, one.voice, ways[way], (), observer)
        figures = ear.hear(one.text, one.voice, spoken.samples, spoken.sample_rate).figures
        run_away = spoken.trace.decoding is not None and any(spoken.trace.decoding.run_away)
        return [figures["edits"], figures["words"], float(run_away)]

    found = np.zeros((len(ways), count, 3))
    for way in range(len(ways)):
        for number in range(count):
            observer.progress(way * count + number, len(ways) * count)
            found[way, number] = kept.get(f"{way}/{number}", lambda: heard(way, number))  # noqa: B023 (called at once)
    kept.forget()
    edits, words = found[..., 0], found[0, :, 1]
    importance = bootstrapped(WORD_ERROR, (edits[1:] / words).T, words, baseline=float(edits[0].sum() / words.sum()))
    return replace(importance, run_away=tuple(int(one) for one in found[1:, :, 2].sum(1)), judge=judge)


class _Kept:
    """Figures by name in a file, so that an interrupted measurement goes on; without a file, only in memory."""

    def __init__(self, folder: Path | None, of: Sequence[object]) -> None:
        """Figures of the measurement that ``of`` describes."""
        digest = hashlib.sha256(repr(of).encode()).hexdigest()[:16]
        self._path = None if folder is None else folder / f"word-errors-{digest}.json"
        self._found: dict[str, list[float]] = {}
        with suppress(OSError, ValueError):
            found = parsed_json(read_text(self._path)) if self._path is not None else {}
            self._found = {name: one for name, one in found.items() if len(one) == 3} if isinstance(found, dict) else {}

    def get(self, name: str, make: Callable[[], list[float]]) -> list[float]:
        if name not in self._found:
            self._found[name] = make()
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(self._path, json.dumps(self._found).encode())
        return self._found[name]

    def forget(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def without(setting: Setting, layer: int, layers: int) -> Setting:
    """``setting`` with all ``layers`` but one, without retraining."""
    kept = ",".join(str(one) for one in range(layers) if one != layer)
    return setting.with_technique(UsedTechnique(NAME, Values(recovery=NONE, layers=kept)))
