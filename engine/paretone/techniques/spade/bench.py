"""Students of SPADE against the whole model: how much faster they are, and what is understood at each stage.

The whole model, its most important layers as they are (pruned), a briefly retrained student if one was kept, and the
fully retrained student; word error rates of an offline judge, and the model's seconds a token in paired rounds.
"""

from __future__ import annotations

import argparse

from paretone.bench import bundled
from paretone.bench import language as common
from paretone.bench.budget import Budget, Turns
from paretone.bench.language import AGAIN, baseline, clean, heard_beside, judged, listened, loaded, timed_decoding
from paretone.bench.report import Report
from paretone.commands.arguments import positive
from paretone.errors import PlainError
from paretone.models.base import StudentWeights
from paretone.models.catalogue import harvard_sentences
from paretone.models.families.language import LanguageSpeech
from paretone.paths import in_own_place
from paretone.setting.knobs import Values
from paretone.setting.setting import UsedTechnique
from paretone.techniques import spade
from paretone.techniques.spade import MEASURED_SENTENCES

NAME = "spade"
WHOLE, PRUNED = "whole model", "pruned"
DEFINITION = (
    "Backbone CPU seconds per token of the whole model over those of its fully retrained student, both in the "
    "engine's optimised autoregressive loop, prompt reading included; median of paired, interleaved rounds on "
    "different sentences."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_arguments(parser)
    parser.add_argument("--depth", type=positive, help="layers of the student (default: of the shallowest retrained)")


def run(arguments: argparse.Namespace) -> Report:
    within = Budget(arguments.minutes, arguments.rounds)
    model = loaded(arguments)
    student = _student(model, arguments.depth)
    retrained = f"fully retrained, {student.depth} of {model.info.layers} layers"
    plain = baseline(arguments)
    used = UsedTechnique(spade.NAME, Values(recovery=spade.NONE, layers=",".join(map(str, student.retained))))
    ways = {WHOLE: plain, PRUNED: plain.with_technique(used)}
    earlier = [one for one in model.info.students if one.retained == student.retained and not one.recovered]
    for one in sorted(earlier, key=lambda one: one.minutes):
        used = UsedTechnique(spade.NAME, Values(depth=one.depth, recovery=spade.PARTLY), one.fingerprint)
        minutes = f"{one.minutes:g} minute{'s' * (one.minutes != 1)}"
        ways[f"briefly retrained, {minutes}"] = plain.with_technique(used)
    used = UsedTechnique(spade.NAME, Values(depth=student.depth), student.fingerprint)
    ways[retrained] = plain.with_technique(used)
    timed = {WHOLE: plain, retrained: ways[retrained]}
    times = timed_decoding(model, timed, bundled.speaker(arguments), arguments.rounds, bundled.say)
    ranked_on = harvard_sentences()[:MEASURED_SENTENCES]  # Texts of the bundled models' ranking.
    said = judged(model, ways, arguments, Turns(within, least=1), prepared_on=ranked_on)
    rows = clean(said, "speech")
    for name in ways:
        row: dict[str, object] = {"speech": name}
        if name in times.decoded:
            row |= {"LM real-time factor": times.decoded[name].real_time_factor, "speed-up": 1.0}
        if name in times.speed_up:
            row |= times.speed_up[name].columns()
        rows.append(row | heard_beside(said, name, WHOLE))
    rows.append({"speech": AGAIN, **times.speed_up[AGAIN].columns()})
    return Report.of(NAME, times.speed_up[retrained], DEFINITION + listened(said, arguments), rows)


def _student(model: LanguageSpeech, depth: int | None) -> StudentWeights:
    there = [one for one in model.info.students if one.recovered and depth in (None, one.depth)]
    if not there:
        which = "fully retrained student" if depth is None else f"fully retrained student with {depth} layers"
        raise PlainError(f"{model.info.title} has no {which}; train one (paretone train spade), then run this again.")
    return min(there, key=lambda one: (in_own_place(one.path, model.info.id), one.depth))
