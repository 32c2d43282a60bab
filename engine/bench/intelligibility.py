"""Word error rate of the bundled model: original speech, vocoder only, baseline, and DiTReducio at three thresholds.

The judge is an offline recogniser closed over the test sentences (see ``engine.measure.intelligibility``); its own
errors on the original speech and on the vocoder's copy of it stand in the same table. Tables are calibrated on one
other sentence.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import torch

from engine.audio.mel import MelFrontEnd
from engine.bench import bundled
from engine.bench.report import Report
from engine.knobs import NO_VALUES, Values
from engine.measure.fidelity import log_mel_distance
from engine.measure.intelligibility import Judge, WordErrors
from engine.measure.machine import describe
from engine.models.base import SpeechModel, Synthesis
from engine.models.catalogue import VOICE_TITLES, entry, voice
from engine.models.f5.config import SAMPLE_RATE
from engine.models.vocos import Vocos
from engine.paths import resource
from engine.setting import Engaged, Setting
from engine.techniques.ditreducio import TECHNIQUE
from engine.techniques.ditreducio.table import StrategyTable
from engine.training.corpora import speak

NAME = "intelligibility"
THRESHOLDS = (0.05, 0.10, 0.20)
DEFINITION = (
    "Share of words that the judge understood of the baseline (1 - word error rate), both voices together, beside its "
    "share on the original speech and on the vocoder's copy of it."
)

Recording = tuple[np.ndarray, int]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this bench."""
    bundled.add_arguments(parser, steps=16, rounds=1)
    parser.add_argument("--sentences", type=int, default=30, help="how many of the 30 Harvard sentences (default: all)")
    parser.add_argument(
        "--thresholds", type=float, nargs="*", default=list(THRESHOLDS), help="thresholds δ (default: three)"
    )


def run(arguments: argparse.Namespace) -> Report:
    """Speak the sentences every way and let the judge listen."""
    lines = resource("sentences", "harvard.txt").read_text(encoding="utf-8").splitlines()
    sentences = [line for line in lines if line.strip()][: arguments.sentences]
    judge = Judge(sentences)
    model = bundled.loaded(arguments)
    baseline = bundled.setting(arguments)
    vocoder = Vocos.load(entry(arguments.model).vocoder_folder)
    tables = {threshold: _calibrated(model, baseline, arguments.text, threshold) for threshold in arguments.thresholds}

    rows = []
    everything: list[WordErrors] = []
    for name in VOICE_TITLES:
        bundled.say(f"{name}: original speech and its copy …")
        original = [(speak(sentence, name).samples, SAMPLE_RATE) for sentence in sentences]
        rows.append(_row(name, "original speech", judge.word_errors(sentences, original)))
        copies = [_copied(vocoder, recording) for recording in original]
        rows.append(_row(name, "vocoder only", judge.word_errors(sentences, copies)))
        bundled.say(f"{name}: {len(sentences)} sentences without a technique …")
        plain = [_spoken(model, sentence, name, baseline, ()) for sentence in sentences]
        errors = judge.word_errors(sentences, list(map(_recording, plain)))
        everything.append(errors)
        rows.append(_row(name, f"baseline, {arguments.steps} steps", errors))
        for threshold, table in tables.items():
            bundled.say(f"{name}: {len(sentences)} sentences at threshold {threshold:g} …")
            engaged = Engaged(TECHNIQUE.name, NO_VALUES, table.fingerprint)
            faster = [_spoken(model, one, name, baseline.with_technique(engaged), (table,)) for one in sentences]
            distance = np.mean([log_mel_distance(a.trace.mel, b.trace.mel) for a, b in zip(plain, faster, strict=True)])
            rows.append(
                _row(name, f"DiTReducio δ = {threshold:g}", judge.word_errors(sentences, list(map(_recording, faster))))
                | {
                    "ops ratio": float(np.mean([one.measurements.ops_ratio for one in faster])),
                    "log-mel distance": float(distance),
                }
            )
    edits = tuple(edit for errors in everything for edit in errors.edits)
    words = tuple(word for errors in everything for word in errors.words)
    both = WordErrors(edits, words, ())
    low, high = both.interval()
    return Report(NAME, 1 - both.rate, (1 - high, 1 - low), DEFINITION, tuple(rows), describe().to_json())


def _calibrated(model: SpeechModel, baseline: Setting, text: str, threshold: float) -> StrategyTable:
    bundled.say(f"calibrating at threshold {threshold:g} …")
    engaged = Engaged(TECHNIQUE.name, Values(threshold=threshold))
    return model.calibrate(text, voice(bundled.VOICE), baseline.with_technique(engaged), bundled.Silent()).table


def _spoken(
    model: SpeechModel, sentence: str, name: str, setting: Setting, artefacts: Sequence[StrategyTable]
) -> Synthesis:
    speech = model.synthesise(sentence, voice(name), setting, tuple(artefacts), bundled.Silent())
    while True:
        try:
            next(speech)
        except StopIteration as end:
            return end.value


@torch.inference_mode()
def _copied(vocoder: Vocos, recording: Recording) -> Recording:
    samples, rate = recording
    mel = MelFrontEnd()(torch.from_numpy(np.asarray(samples, np.float32)))
    return vocoder.decode(mel.transpose(1, 2))[0].numpy(), rate


def _recording(synthesis: Synthesis) -> Recording:
    return synthesis.samples, synthesis.sample_rate


def _row(name: str, speech: str, errors: WordErrors) -> dict[str, object]:
    low, high = errors.interval()
    return {
        "voice": name,
        "speech": speech,
        "word error rate": errors.rate,
        "low": low,
        "high": high,
        "errors": sum(errors.edits),
        "words": sum(errors.words),
    }
