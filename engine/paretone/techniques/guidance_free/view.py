"""Effect of the weight w of CFG-free training, and of the training's length: figures 1 and 2 of the CFG-free paper, for
the available weights.

Weights trained with w equal guidance of strength g = w / (1 − w): they are compared with the plain checkpoint guided at
that strength, and with its conditional branch alone, the start of training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from paretone.errors import SettingError
from paretone.measure.evaluation.judges import judge_named
from paretone.models.base import ModelInfo, Synthesis, WeightSet
from paretone.setting.knobs import Values
from paretone.setting.plan import NotPrepared
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import compatibility_of, guidance_free
from paretone.techniques.base import to_type
from paretone.views.figure import Axis, Curve, Lines
from paretone.views.view import Findings, Stages, Task, View, sentences_knob
from paretone.wording import counted, percent

ASKED = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.67, 0.7, 0.8, 0.9)
"""Weights whose checkpoints the caption reports; the paper's training broke down above 0.7."""
Bands = dict[str, list[tuple[float, float, float]]]
"""Values with their intervals, by way to speak."""
CFG_FREE, GUIDED, ALONE = "CFG-free", "guided at equal strength", "conditional branch alone"


def compute(task: Task) -> Findings:
    """Speak all sentences with all weights, with guidance of equal strengths, and without guidance."""
    from paretone.views.quality import distance, judge_of, judged_utterances, measured, speak_all, speaker, word_errors

    model, info = task.model, task.model.info
    sets = weight_sets(info)
    setting = task.setting.baseline
    sentences = judged_utterances(task.utterance, int(task.knobs["sentences"]))
    units = 1.3 * info.of_flow.layers * compatibility_of(task.flow.info, setting, of_flow=True).steps
    work = Stages(task.observer, units * len(sentences) * (2 * len(sets) + 1))
    judge = judge_of(sentences)
    kind = speaker()
    ear = None if kind.problem() else kind.ready([one.text for one in sentences])
    distances: dict[str, list[float]] = {CFG_FREE: [], ALONE: []}
    rates: Bands = {CFG_FREE: [], GUIDED: [], ALONE: []}
    likeness: Bands = {name: [] for name in rates}

    def guided(strength: float, title: str) -> list:
        return speak_all(model, sentences, guidance_free.guided(setting, strength), work, units, title)

    alone = guided(0.0, "Conditional branch alone")
    for one in sets:
        strength = one.equivalent_guidance
        reference = guided(strength, f"Guided at {strength:.2f}")
        entered = setting.with_technique(UsedTechnique(guidance_free.NAME, Values(weight=one.weight), one.fingerprint))
        spoken = speak_all(model, sentences, entered, work, units, f"CFG-free, w = {one.weight:.2f}")
        distances[CFG_FREE].append(distance(reference, spoken))
        distances[ALONE].append(distance(reference, alone))
        for name, recordings in ((CFG_FREE, spoken), (GUIDED, reference), (ALONE, alone)):
            if judge is not None:
                errors = word_errors(judge, sentences, recordings)
                rates[name].append((errors.rate, *errors.interval()))
            if ear is not None:
                likeness[name].append(measured(ear, sentences, recordings))
    heard: list[tuple[str, Axis, Bands]] = []
    if judge is not None:
        heard.append(("Intelligibility", Axis("Word error rate", "%"), rates))
    if ear is not None:
        heard.append((kind.title, Axis("Speaker similarity"), likeness))
    panels = _panels(sets, distances, heard)
    return Findings(panels, _caption(info, sets, distances, rates, len(sentences), judge is not None), 2, sentences)


def weight_sets(info: ModelInfo) -> tuple[WeightSet, ...]:
    """One set of weights for each w, ascending. Raises :class:`SettingError` if there is none."""
    guidance_free.require_guidance(info)
    if not info.weight_sets:
        raise SettingError(
            f"{info.title} has no CFG-free weights to compare; train some, for example with w = 0.5, or load a model "
            "that has them."
        )
    trained = [one for one in info.weight_sets if not one.stage] or info.weight_sets
    return tuple(sorted({one.weight: one for one in trained}.values(), key=lambda one: one.weight))


def missing(sets: Sequence[WeightSet]) -> tuple[float, ...]:
    """Those of :data:`ASKED` without a set of weights."""
    there = [one.weight for one in sets]
    return tuple(one for one in ASKED if all(abs(one - weight) > guidance_free.SAME_WEIGHT for weight in there))


def _panels(
    sets: Sequence[WeightSet], distances: Mapping[str, Sequence[float]], heard: Sequence[tuple[str, Axis, Bands]]
) -> tuple[Lines, ...]:
    """Panels of the distances, and of what each judge ``heard``: title, axis, and bands by way."""
    weights = tuple(one.weight for one in sets)
    notes = tuple(f"g = {one.equivalent_guidance:.2f}, {one.method}" for one in sets)
    axis = Axis("Guidance weight w of the training")
    away = tuple(
        Curve(name, weights, tuple(values), notes=notes, reference=name == ALONE) for name, values in distances.items()
    )
    panels = [Lines("Distance to guidance g = w / (1 − w)", axis, Axis("Log-mel distance", "natural log"), away)]
    for title, measured, found in heard:
        scale = 100 if measured.unit == "%" else 1
        curves = tuple(
            Curve.banded(name, weights, (scale * np.array(bands)).tolist(), notes=notes, reference=name != CFG_FREE)
            for name, bands in found.items()
        )
        panels.append(Lines(title, axis, measured, curves))
    return tuple(panels)


def _caption(
    info: ModelInfo,
    sets: Sequence[WeightSet],
    distances: Mapping[str, Sequence[float]],
    rates: Mapping[str, Sequence[tuple[float, float, float]]],
    sentences: int,
    judged: bool,
) -> str:
    parts = []
    for index, one in enumerate(sets):
        own, alone = distances[CFG_FREE][index], distances[ALONE][index]
        way = "closer to" if own < alone else "farther from"
        words = (
            f"w = {one.weight:.2f} ({one.method}) lies {own:.3f} from guidance g = {one.equivalent_guidance:.2f}, "
            f"{percent(abs(1 - own / alone))} {way} it than the conditional branch alone ({alone:.3f})"
        )
        if judged:
            free, guided = (percent(rates[one][index][0], 1) for one in (CFG_FREE, GUIDED))
            words += f"; word error rate {free} against {guided} guided"
        parts.append(f"{words}.")
    absent = ", ".join(f"{one:g}" for one in missing(sets))
    heard = "" if judged else " Word error rates need pip install 'paretone[judge]'."
    return (
        f"{' '.join(parts)} One branch instead of two. {sentences} sentences; bands are 95 % bootstrap intervals."
        f"{heard} {info.title} has no checkpoint for w = {absent}."
    )


VIEW = View(
    name="guidance-weight",
    title="Effect of w",
    question="How close are CFG-free weights to guidance of the same strength?",
    source="Flow matching without classifier-free guidance (arXiv 2504.20334), figure 1",
    families=("flow",),
    knobs=lambda layers: (sentences_knob(6),),
    compute=compute,
)


def compute_stages(task: Task) -> Findings:
    """Speak all sentences with every stage's weights, with guidance of equal strength, and without, the start (step
    0)."""
    from paretone.views.quality import judged_utterances, judges_of_papers, measured, speak_all, speaker

    model, setting = task.model, task.setting.baseline
    runs = trainings(model.info)
    kinds = judges_of_papers()
    if not kinds:
        raise SettingError(f"No judge is installed. {judge_named('words').problem()} {speaker().problem()}")
    sentences = judged_utterances(task.utterance, int(task.knobs["sentences"]))
    units = 1.3 * model.info.of_flow.layers * compatibility_of(task.flow.info, setting, of_flow=True).steps
    ways = 1 + len({run[0].weight for run in runs}) + sum(map(len, runs))
    work = Stages(task.observer, units * len(sentences) * ways)

    def spoken(way: Setting, title: str) -> list[Synthesis]:
        return speak_all(model, sentences, way, work, units, title)

    def guided(strength: float, title: str) -> list[Synthesis]:
        return spoken(guidance_free.guided(setting, strength), title)

    start = guided(0.0, "Before training")
    points: dict[str, list[tuple[float, list[Synthesis]]]] = {}
    for run in runs:
        weight, strength = run[0].weight, run[0].equivalent_guidance
        name, goal = f"w = {weight:.2f} ({run[0].method})", f"{GUIDED}, g = {strength:.2f}"
        name += f", {Path(run[-1].path).stem}" if name in points else ""
        points[name] = [(0.0, start)]
        for one in run:
            used = UsedTechnique(guidance_free.NAME, Values(weight=weight), one.fingerprint)
            points[name].append((float(one.steps), spoken(setting.with_technique(used), f"{name}, {one.steps} steps")))
        reference = points.get(goal) or [(0.0, guided(strength, goal))]
        points[goal] = [reference[0], (max(points[name][-1][0], reference[-1][0]), reference[0][1])]
    panels = []
    for kind, axis in kinds:
        ear, curves = kind.ready([one.text for one in sentences]), []
        for name, made in points.items():
            bands = (measured(ear, sentences, takes) for _, takes in made)
            curves.append(Curve.banded(name, [step for step, _ in made], bands, reference=name.startswith(GUIDED)))
        panels.append(Lines(kind.title, Axis("Steps of training"), axis, tuple(curves)))
    return Findings(tuple(panels), _stage_caption(panels, len(sentences)), 2, sentences)


def trainings(info: ModelInfo) -> tuple[tuple[WeightSet, ...], ...]:
    """Weights of each training with stages, in the order of their steps. Raises :class:`NotPrepared` without any."""
    from paretone.training.runs import log_of
    from paretone.training.session import read_log

    guidance_free.require_guidance(info)
    found: dict[tuple[float, str, str], list[WeightSet]] = {}
    for one in sorted(info.weight_sets, key=lambda one: one.steps):
        # All files of a run have its log, whose first line is the run's own.
        begun = str(read_log(log_of(Path(one.path)))[:1])
        found.setdefault((one.weight, one.method, begun), []).append(one)
    runs = tuple(tuple(one) for one in found.values() if any(each.stage for each in one))
    if not runs:
        raise NotPrepared(
            f"{info.title} has no CFG-free weights that were kept during a training; train some with stages.",
            command=to_type("train cfg-free --weight 0.5 --steps 400 --stages 100 200 400 --work runs/stages", info),
        )
    return runs


def _stage_caption(panels: Sequence[Lines], sentences: int) -> str:
    parts = [
        f"{curve.name}: {panel.y.label.lower()} {curve.y[0]:.3g} before training, {curve.y[-1]:.3g} after "
        f"{curve.x[-1]:.0f} steps."
        for panel in panels
        for curve in panel.curves
        if not curve.reference
    ]
    return (
        f"{' '.join(parts)} Step 0 is the conditional branch alone. Bands are 95 % bootstrap intervals over "
        f"{counted(sentences, 'sentence', 'sentences')}. The paper trained from scratch, and measured LibriSpeech-PC "
        "with Whisper and SIM-o."
    )


STAGES = View(
    name="weights-over-training",
    title="Weights over training",
    question="How soon does training give one branch the words and the voice of guidance?",
    source="Flow matching without classifier-free guidance (arXiv 2504.20334), figure 2",
    families=("flow",),
    knobs=lambda layers: (sentences_knob(6),),
    compute=compute_stages,
)
