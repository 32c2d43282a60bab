"""Other ways of accepting drafts, next to tolerances: which, what they need, and what is measured of them.

Which techniques accept is in ``resources/benches/ssd.toml``. Beyond speed and judged figures, ways are compared by
their diversity, the spread of takes of one sentence over seeds, and by the tolerance that is as fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from paretone.bench import bundled
from paretone.bench.budget import Turns
from paretone.bench.ways import Addition, read
from paretone.measure.melody import diversity, log_pitch
from paretone.models.base import SpeechModel, Voice, run_to_completion
from paretone.models.silent_observer import SilentObserver
from paretone.setting.knobs import Values
from paretone.setting.setting import Artefact, Setting, UsedTechnique
from paretone.studies.hooks import preparer
from paretone.techniques import speculative

FILE = "ssd"
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
    """Token by token at every tolerance, guarded and as published, and what the bench's file adds to that at β = 0;
    ``knobs`` are the drafting technique's own. Raises :class:`paretone.errors.PlainError`."""
    by_token = knobs.replace(verification=speculative.BY_TOKEN)
    ways = {}
    for tolerance in TOLERANCES:
        used = UsedTechnique(speculative.NAME, by_token.replace(tolerance=tolerance))
        ways[tolerance_title(tolerance)] = plain.with_technique(used)
    last = by_token.replace(tolerance=TOLERANCES[-1], tolerated=speculative.PUBLISHED)
    ways[f"{tolerance_title(TOLERANCES[-1])}, as published"] = plain.with_technique(
        UsedTechnique(speculative.NAME, last)
    )
    exact, artefacts = ways[tolerance_title(0.0)], []
    added = [one.addition(()) for one in read(FILE).tables("ways")]
    for addition in added:
        ways[addition.title], found = _prepared(model, exact, addition)
        artefacts += found
    return Accepting(ways, tuple(artefacts), added[0].title)


def _prepared(model: SpeechModel, exact: Setting, addition: Addition) -> tuple[Setting, list[Artefact]]:
    """``exact`` with the techniques, and the artefacts that were prepared for them."""
    setting, artefacts = exact, []
    for entry in addition.entries:
        used = entry.with_values({})
        if entry.technique.artefact is not None:
            bundled.say(f"{addition.title}: preparing …")
            artefact = preparer(used.technique)(model, (), setting.with_technique(used), SilentObserver())
            artefacts.append(artefact)
            used = replace(used, artefact=artefact.fingerprint)
        setting = setting.with_technique(used)
    return setting, artefacts


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
        speech = model.synthesise(text, voice, replace(setting, seed=seed), artefacts, SilentObserver())
        take = run_to_completion(speech)
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
