"""Word error rate of a bundled model: original speech, vocoder and tokenizer only, generated, with DiTReducio.

The judge is an offline recogniser closed over the test sentences (see ``paretone.measure.intelligibility``); its own
errors on the original speech and on copies of it by the vocoder, and by the tokenizer or codec if the model has one,
are in the same table. Flow models also speak under DiTReducio at three thresholds, with tables calibrated on one other
sentence; masked models in other numbers of steps.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from statistics import fmean

import numpy as np

from paretone.bench import bundled
from paretone.bench.report import Report
from paretone.commands.arguments import finite, positive
from paretone.measure.fidelity import log_mel_distance
from paretone.measure.intelligibility import WordErrors
from paretone.measure.timing import Interval
from paretone.measure.verdicts import VoiceVerdict, Way, judged_means, verdicts
from paretone.models.base import LANGUAGE, MASKED, SpeechModel, Utterance
from paretone.models.catalogue import entry, voice
from paretone.models.loading import load_vocoder
from paretone.models.minis.lm_mini import LmMiniSpeech
from paretone.models.minis.omni_mini import OmniMiniSpeech
from paretone.observer import Observer
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques.ditreducio import TECHNIQUE
from paretone.techniques.ditreducio.preparation import calibrate_model
from paretone.wording import Share

NAME = "intelligibility"
THRESHOLDS = (0.05, 0.10, 0.20)
OTHER_STEPS = (8, 32)
DEFINITION = (
    "Share of words that the judge understood of the baseline (1 - word error rate), all voices together, with its "
    "share on the original speech and on the vocoder's copy of it."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    bundled.add_arguments(parser, steps=16, rounds=None)
    bundled.add_listening_arguments(parser, sentences=30, least=1)
    parser.add_argument(
        "--thresholds", type=finite, nargs="*", default=list(THRESHOLDS), help="thresholds δ (default: three)"
    )
    parser.add_argument(
        "--other-steps", type=positive, nargs="*", default=list(OTHER_STEPS), help="of masked models (default: 8 32)"
    )


def run(arguments: argparse.Namespace) -> Report:
    model = bundled.loaded(arguments)
    if model.info.family == LANGUAGE:
        plain = Way("generated", Setting(arguments.model, entry(arguments.model).options_with(), seed=arguments.seed))
        ways = [plain]
    else:
        baseline = bundled.setting(arguments)
        plain = Way(f"baseline, {arguments.steps} steps", baseline)
        if model.info.family == MASKED:
            ways = [plain]
            for steps in arguments.other_steps:
                ways.append(Way(f"{steps} steps", replace(baseline, options=baseline.options.replace(steps=steps))))
        else:
            ways = [plain, *(_accelerated(model, baseline, arguments.text, one) for one in arguments.thresholds)]
    vocoder = load_vocoder(entry(arguments.model).vocoder_folder)
    tokenizer = model.copied if isinstance(model, LmMiniSpeech | OmniMiniSpeech) else None
    rows, baselines = [], {}
    # Tables are calibrated on one sentence, which the judge does not hear.
    sentences = bundled.heard_sentences(arguments, [arguments.text])
    for verdict in verdicts(sentences, bundled.heard_voices(arguments), vocoder, model, ways, bundled.say, tokenizer):
        if verdict.speech == plain.title:
            baselines[verdict.voice] = verdict
        rows.append(_row(verdict, baselines.get(verdict.voice)))
    both = sum((verdict.errors for verdict in baselines.values()), WordErrors())
    low, high = both.interval()
    return Report.of(NAME, Interval(1 - both.rate, 1 - high, 1 - low), DEFINITION, rows)


def _accelerated(model: SpeechModel, baseline: Setting, text: str, threshold: float) -> Way:
    bundled.say(f"calibrating at threshold {threshold:g} …")
    used = UsedTechnique(TECHNIQUE.name, Values(threshold=threshold))
    utterance = Utterance(text, voice("", model.info.id))
    record = calibrate_model(model, [utterance], baseline.with_technique(used), Observer())
    setting = baseline.with_technique(replace(used, artefact=record.table.fingerprint))
    return Way(f"DiTReducio δ = {threshold:g}", setting, (record.table,))


def _row(verdict: VoiceVerdict, baseline: VoiceVerdict | None) -> dict[str, object]:
    """Row of a verdict; with savings and distance from ``baseline`` if it is another way of speaking."""
    low, high = map(Share, verdict.errors.interval())
    row: dict[str, object] = {
        "voice": verdict.voice,
        "speech": verdict.speech,
        "word error rate": Share(verdict.errors.rate),
        "low": low,
        "high": high,
        "errors": sum(verdict.errors.edits),
        "words": sum(verdict.errors.words),
        **judged_means([verdict]),
    }
    if verdict.syntheses:
        row["real-time factor"] = float(np.median([one.measurements.real_time_factor for one in verdict.syntheses]))
        row["first audio (s)"] = float(np.median([one.measurements.first_audio_seconds for one in verdict.syntheses]))
        row["longest gap (s)"] = max(one.measurements.largest_gap_seconds for one in verdict.syntheses)
        row["takes with notes"] = sum(bool(one.notes) for one in verdict.syntheses)
    if baseline is not None and verdict is not baseline:
        pairs = list(zip(baseline.syntheses, verdict.syntheses, strict=True))
        row["ops ratio"] = float(np.mean([one.measurements.ops_ratio for one in verdict.syntheses]))
        row["log-mel distance"] = fmean(log_mel_distance(a.trace.drawn_mel, b.trace.drawn_mel) for a, b in pairs)
    return row
