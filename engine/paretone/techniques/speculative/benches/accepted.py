"""Other ways of accepting drafts, next to tolerances: which, what they need, and what is measured of them.

Beyond speed and judged figures, ways are compared by their diversity, the spread of takes of one sentence over seeds,
and by the tolerance that is as fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from paretone.bench import bundled
from paretone.bench.budget import Turns
from paretone.bench.bundled import used
from paretone.measure.pitch import diversity, log_pitch
from paretone.models.base import SpeechModel, Voice
from paretone.observer import Observer
from paretone.setting.knobs import Values
from paretone.setting.setting import Artefact, Setting, UsedTechnique
from paretone.speaking import synthesise
from paretone.studies.hooks import preparer
from paretone.techniques import speculative

GROUPS = {
    "SSD, groups of up to 8": used("token_groups"),
    "SSD, groups of up to 4": used("token_groups", largest=4),
    "SSD, groups of up to 16": used("token_groups", cosine=0.4, largest=16),
    "SSD, groups of up to 8, as published": used("token_groups", within=False),
}
"""Drafts accepted in groups, by the least similarity of a group's tokens and their greatest number; the first is the
headline. The second accepts about as many drafted tokens as a tolerance of 0.2, the third as one of 0.4."""
TOLERANCES = (0.0, 0.2, 0.4)
DEFINITION = (
    "Backbone CPU seconds per token of the engine's optimised autoregressive loop over those of speculative decoding "
    "with drafts accepted as in the first of the other ways, prompt reading included; median of paired, interleaved "
    "rounds on different sentences."
)


@dataclass(frozen=True)
class Accepting:
    """Ways of accepting by their titles, and the artefacts that they name."""

    ways: Mapping[str, Setting]
    artefacts: tuple[Artefact, ...]
    headline: str


def tolerance_title(tolerance: float) -> str:
    """Title of a way with this tolerance."""
    return f"SSD, β = {tolerance:g}"


def accepting(model: SpeechModel, plain: Setting, knobs: Values) -> Accepting:
    """Token by token at every tolerance, guarded and as published, and :data:`GROUPS` on top of that at β = 0;
    ``knobs`` are the drafting technique's own. Raises :class:`paretone.errors.PlainError`."""
    by_token = knobs.replace(verification=speculative.BY_TOKEN)
    ways = {}
    for tolerance in TOLERANCES:
        drafted = UsedTechnique(speculative.NAME, by_token.replace(tolerance=tolerance))
        ways[tolerance_title(tolerance)] = plain.with_technique(drafted)
    last = by_token.replace(tolerance=TOLERANCES[-1], tolerated=speculative.PUBLISHED)
    ways[f"{tolerance_title(TOLERANCES[-1])}, as published"] = plain.with_technique(
        UsedTechnique(speculative.NAME, last)
    )
    exact, artefacts = ways[tolerance_title(0.0)], []
    for title, grouped in GROUPS.items():
        bundled.say(f"{title}: preparing …")
        artefact = preparer(grouped.technique)(model, (), exact.with_technique(grouped), Observer())
        artefacts.append(artefact)
        ways[title] = exact.with_technique(replace(grouped, artefact=artefact.fingerprint))
    return Accepting(ways, tuple(artefacts), next(iter(GROUPS)))


def diversities(
    model: SpeechModel,
    accepted: Accepting,
    plain: Mapping[str, Setting],
    voice: Voice,
    texts: Sequence[str],
    seeds: int,
    turns: Turns,
) -> Mapping[str, float | None]:
    """Mean diversity of each way over ``texts``, each spoken with ``seeds`` seeds, while ``turns`` allow another;
    ``None`` where too little is voiced, empty without texts."""
    found: dict[str, list[float]] = {}
    for at, text in enumerate(texts):
        if not turns.another():
            break
        bundled.say(f"sentence {at + 1} of {len(texts)}: {seeds} takes of each way …")
        for title, setting in {**plain, **accepted.ways}.items():
            one = diversity(list(_curves(model, text, voice, setting, accepted.artefacts, seeds)))
            found.setdefault(title, []).extend([] if one is None else [one])
    return {title: float(np.mean(known)) if known else None for title, known in found.items()}


def _curves(
    model: SpeechModel, text: str, voice: Voice, setting: Setting, artefacts: tuple[Artefact, ...], seeds: int
) -> Iterator[np.ndarray]:
    for seed in range(seeds):
        take = synthesise(model, text, voice, replace(setting, seed=seed), artefacts)
        yield log_pitch(take.samples, take.sample_rate)


def equal_tolerance(speed_up: float, tolerated: Mapping[float, float]) -> float | str:
    """The tolerance that is as fast as ``speed_up``, between those measured in ``tolerated``; in words outside."""
    betas = sorted(tolerated)
    speeds = np.maximum.accumulate([tolerated[one] for one in betas])
    if speed_up < speeds[0]:
        return f"below {betas[0]:g}"
    if speed_up > speeds[-1]:
        return f"above {betas[-1]:g}"
    return float(np.interp(speed_up, speeds, betas))
