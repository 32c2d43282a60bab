"""Effect of tolerance and draft length: table 3 and figure 3 of the SSD paper, with plain decoding in the same run.

Every sentence is spoken in all ways before the next one, so that drifts of the machine's speed affect all ways equally.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from paretone.errors import SettingError
from paretone.measure.decoding import Drafting, Parts, drafting
from paretone.measure.estimates import bootstrap, mean_ratio
from paretone.models.base import Synthesis
from paretone.setting.knobs import Effect, Knob, Values, amount, defaults
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import make_ready, synthesise
from paretone.techniques import speculative
from paretone.techniques.speculative import LENGTH, TOLERANCES
from paretone.views.figure import Axis, Curve, Lines
from paretone.views.view import Findings, Stages, Task, View, count_knob, sentences_knob
from paretone.wording import percent, times

if TYPE_CHECKING:
    from paretone.measure.intelligibility import WordErrors

_Place = TypeVar("_Place", int, float)
PAPER = {0.0: 0.504 / 0.509, 0.1: 0.504 / 0.444, 0.2: 0.504 / 0.408, 0.3: 0.504 / 0.386, 0.4: 0.504 / 0.360}
"""Speed-ups of the published table 3: LM-RTF of CosyVoice 2 alone over that with SSD."""
DRAWS = 1000


@dataclass
class _Way:
    setting: Setting
    spoken: list[Synthesis] = field(default_factory=list)

    @property
    def factors(self) -> np.ndarray:
        return np.array([one.measurements.backbone_seconds / one.measurements.audio_seconds for one in self.spoken])

    @property
    def sums(self) -> Drafting:
        found = [drafting(one.trace.decoding) for one in self.spoken if one.trace.decoding is not None]
        return Drafting(*(sum(values) for values in zip(*map(astuple, found), strict=True)))

    def over(self, reference: _Way) -> Parts:
        parts = self.sums.parts_over(reference.sums)
        assert parts is not None, "every pass takes time"
        return parts

    def rest_over(self, reference: _Way) -> float:
        """Time of the language model that is neither drafting, nor a pass of the target, nor the prompt, of a cycle in
        passes of plain decoding."""
        whole = sum(one.measurements.backbone_seconds or 0.0 for one in self.spoken)
        return max(0.0, whole - self.sums.seconds) / self.sums.passes / reference.sums.pass_seconds

    def words(self, reference: _Way) -> str:
        parts, spent = self.over(reference), self.sums
        return (
            f"E {parts.tokens:.2f}, {percent(spent.accepted / max(spent.drafted, 1))} accepted, v "
            f"{parts.verification:.2f}, c {parts.draft:.2f}, prompt {parts.prompt:.2f}, rest "
            f"{self.rest_over(reference):.2f}"
        )


def knobs(layers: int) -> tuple[Knob, ...]:
    own = {one.name: one for one in speculative.TECHNIQUE.knobs}
    return (
        sentences_knob(4),
        count_knob("longest", "Longest draft", "Largest draft length to try, from 1.", 6, 8, least=2, unit="tokens"),
        amount(
            "tolerance",
            "At tolerance",
            "Tolerance β for comparing draft lengths; 0.4 in the paper, 0 is exact.",
            default=0.4,
            between=(0.0, 1.0),
            symbol="β",
            step=0.1,
            effect=Effect.NEXT_VIEW,
        ),
        replace(own["tolerated"], default=speculative.PUBLISHED, effect=Effect.NEXT_VIEW),
        replace(own["draft"], default=speculative.OF_LAYERS, effect=Effect.NEXT_VIEW),
    )


def compute(task: Task) -> Findings:
    info, drafts = task.model.info, speculative.fitting_drafts(task.model.info, task.knobs)
    if not drafts:
        kind = speculative.KINDS.get(task.knobs["draft"], "draft")
        raise SettingError(f"{info.title} has no {kind} to propose tokens; train one in Training.")
    from paretone.views.quality import judge_of, judged_utterances, word_errors

    model, plain = task.model, task.setting.baseline
    lengths = tuple(range(1, int(task.knobs["longest"]) + 1))
    tolerance = float(task.knobs["tolerance"])
    wanted = {(one, LENGTH) for one in TOLERANCES} | {(tolerance, length) for length in lengths}
    ways = {place: _Way(speculating(plain, task.knobs, *place)) for place in sorted(wanted)}
    reference = _Way(plain)
    every = (reference, *ways.values())
    sentences = judged_utterances(task.utterance, int(task.knobs["sentences"]))
    work = Stages(task.observer, 100 * len(every) * len(sentences))
    for way in every:
        make_ready(model, way.setting, task.utterance.voice, observer=task.observer)
    for number, one in enumerate(sentences, start=1):
        for index, way in enumerate(every, start=1):
            text = f"Sentence {number} of {len(sentences)}, way {index} of {len(every)}"
            way.spoken.append(synthesise(model, one.text, one.voice, way.setting, (), work.part(100, text)))
    judge = judge_of(sentences)
    errors = {} if judge is None else {id(way): word_errors(judge, sentences, way.spoken) for way in every}
    table = {beta: ways[beta, LENGTH] for beta in TOLERANCES}
    figure = {length: ways[tolerance, length] for length in lengths}
    panels = [
        _speed(f"Language model, L_d = {LENGTH}", _BETA, table, reference, PAPER),
        _speed(f"Language model, β = {tolerance:g}", _LENGTHS, figure, reference, {}),
    ]
    if errors:
        panels.append(_intelligibility(table, reference, errors))
    panels += [_tokens(figure), _time(figure, reference)]
    kind = speculative.drafting(drafts[0])
    drafted = "" if kind == speculative.OF_LAYERS else f"A {speculative.KINDS[kind]} drafts, unlike in the paper. "
    said = drafted + RULES[task.knobs["tolerated"]] + _caption(table, figure, reference, errors, len(sentences))
    return Findings(tuple(panels), said, 2, sentences)


RULES = {
    speculative.PUBLISHED: "The tolerance applies to every id, as published. ",
    speculative.GUARDED: "The tolerance applies to ids that the model may draw, unlike in the paper. ",
}
_BETA, _LENGTHS = Axis("Tolerance β"), Axis("Draft length L_d", "tokens")


def speculating(plain: Setting, own: Values, tolerance: float, length: int) -> Setting:
    """``plain`` with drafts of ``length`` at ``tolerance``, otherwise by the view's ``own`` knobs."""
    chosen = defaults(speculative.TECHNIQUE.knobs).replace(
        tolerance=tolerance,
        draft_length=length,
        adaptive=False,
        tolerated=own["tolerated"],
        draft=own["draft"],
        # The rule for tolerances, at 0 as well: otherwise two things would change between 0 and the next value.
        verification=speculative.BY_TOKEN,
    )
    return plain.with_technique(UsedTechnique(speculative.NAME, chosen))


def paired_speed_up(
    way: Sequence[float] | np.ndarray, reference: Sequence[float] | np.ndarray
) -> tuple[float, float, float]:
    """Speed-up: the ratio of mean real-time factors, with its 95 % bootstrap interval over the same sentences."""
    return bootstrap(mean_ratio, np.asarray(reference), np.asarray(way), draws=DRAWS)


def _speed(title: str, axis: Axis, ways: Mapping[_Place, _Way], reference: _Way, paper: Mapping[float, float]) -> Lines:
    found = [paired_speed_up(way.factors, reference.factors) for way in ways.values()]
    places, parts = tuple(float(one) for one in ways), [way.over(reference) for way in ways.values()]
    notes = tuple(
        f"LM real-time factor {way.factors.mean():.3f} against {reference.factors.mean():.3f}, {way.words(reference)}"
        for way in ways.values()
    )
    curves = [
        Curve.banded("measured", places, found, notes=notes),
        Curve("predicted", places, tuple(one.predicted for one in parts)),
        Curve("if v were 1", places, tuple(replace(one, verification=1.0).predicted for one in parts)),
    ]
    if paper:
        curves.append(Curve("paper", tuple(paper), tuple(paper.values())))
    curves.append(Curve("plain decoding", (places[0], places[-1]), (1.0, 1.0), reference=True))
    return Lines(title, axis, Axis("Speed-up", "×"), tuple(curves))


def _intelligibility(table: Mapping[float, _Way], reference: _Way, errors: Mapping[int, WordErrors]) -> Lines:
    places = tuple(table)
    found = [errors[id(way)] for way in table.values()]
    bands = [[100 * value for value in (one.rate, *one.interval())] for one in found]
    plain = 100 * errors[id(reference)].rate
    return Lines(
        f"Intelligibility, L_d = {LENGTH}",
        _BETA,
        Axis("Word error rate", "%"),
        (
            Curve.banded("SSD", places, bands),
            Curve("plain decoding", (places[0], places[-1]), (plain, plain), reference=True),
        ),
    )


def _tokens(figure: Mapping[int, _Way]) -> Lines:
    places = tuple(float(length) for length in figure)
    return Lines(
        "Tokens per target pass, E",
        _LENGTHS,
        Axis("E"),
        (
            Curve("measured", places, tuple(way.sums.tokens_per_pass for way in figure.values())),
            Curve("everything accepted", places, tuple(one + 1 for one in places), reference=True),
        ),
    )


def _time(figure: Mapping[int, _Way], reference: _Way) -> Lines:
    places = tuple(float(length) for length in figure)
    parts = [way.over(reference) for way in figure.values()]
    rests = [way.rest_over(reference) for way in figure.values()]
    plain = 1 + reference.over(reference).prompt + reference.rest_over(reference)
    return Lines(
        "Time per token",
        _LENGTHS,
        Axis("Time per token", "plain passes"),
        (
            Curve("verifying", places, tuple(one.verification / one.tokens for one in parts)),
            Curve("drafting", places, tuple(one.length * one.draft / one.tokens for one in parts)),
            Curve("prompt", places, tuple(one.prompt / one.tokens for one in parts)),
            Curve("rest", places, tuple(rest / one.tokens for rest, one in zip(rests, parts, strict=True))),
            Curve("plain decoding", (places[0], places[-1]), (plain, plain), reference=True),
        ),
    )


def _caption(
    table: Mapping[float, _Way],
    figure: Mapping[int, _Way],
    reference: _Way,
    errors: Mapping[int, WordErrors],
    sentences: int,
) -> str:
    speeds = {beta: paired_speed_up(way.factors, reference.factors)[0] for beta, way in table.items()}
    lengths = {length: paired_speed_up(way.factors, reference.factors)[0] for length, way in figure.items()}
    best = max(lengths, key=lengths.__getitem__)
    first, last = min(speeds), max(speeds)
    words = (
        f"With {LENGTH} drafted tokens the language model is {times(speeds[first])} as fast at β = {first:g}, "
        f"where speech is distributed exactly as without drafts, and {times(speeds[last])} at β = {last:g} (paper: "
        f"{times(PAPER[first])} and {times(PAPER[last])}). Drafting {best} token{'' if best == 1 else 's'} is fastest, "
        f"{times(lengths[best])}. "
    )
    if errors:
        rates = {beta: errors[id(way)].rate for beta, way in table.items()}
        words += (
            f"Word error rate {percent(errors[id(reference)].rate, 1)} plainly, {percent(rates[first], 1)} at β = "
            f"{first:g}, {percent(rates[last], 1)} at β = {last:g}. "
        )
    else:
        words += "Word error rates need pip install 'paretone[judge]'. "
    plural = "" if sentences == 1 else "s"
    return (
        f"{words}Predicted is E / (v + K·c), from tokens per pass E, the time v of a verifying pass and c of a drafted "
        "token, measured in passes of plain decoding; what is measured also counts the prompt, which no draft "
        f"shortens, and the rest. The paper's figures are CosyVoice 2's on an A100. {sentences} sentence{plural}, "
        "spoken all ways in turn; bands are 95 % bootstrap intervals."
    )


VIEW = View(
    name="speculation",
    title="SSD: tolerance and length",
    question="What do tolerance and draft length gain, and what do they cost?",
    source="Speech speculative decoding (arXiv 2505.15380), table 3 and figure 3",
    families=("language",),
    knobs=knobs,
    compute=compute,
)
