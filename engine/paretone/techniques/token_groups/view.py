"""Share of accepted drafted tokens by similarity and size of the groups, compared with tolerances.

The target speaks the sentences without drafts. At each token the draft's distribution p and the target's q are
compared: a drafted token is accepted with probability Σ min(P, Q) over groups, Σ min(p, q) over tokens, and with a
tolerance Σ p · min(1, q / p + β): over all tokens as published, else over tokens that the target may draw.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from paretone.errors import SettingError
from paretone.setting.knobs import Values
from paretone.techniques import resolve, token_groups
from paretone.techniques.published import rule_of
from paretone.techniques.token_groups.groups import SPACES
from paretone.views.figure import Axis, Curve, Lines
from paretone.views.view import PUBLISHED, RULE, Findings, ProgressStage, Stages, Task, View, sentences_knob
from paretone.wording import listed

if TYPE_CHECKING:
    from torch import Tensor

    from paretone.models.base import Utterance
    from paretone.models.families.language import LanguageSpeech

COSINES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
SIZES = (4, 8, 16, 64)
"""Sizes of the largest groups to compare."""
TOLERANCES = (0.0, 0.2, 0.4)


def compute(task: Task) -> Findings:
    import torch

    from paretone.sampling.verification import TokenGroups, acceptance
    from paretone.techniques.token_groups.finding import directions, language_speech, neighbourhoods
    from paretone.views.quality import judged_utterances

    speech = language_speech(task.model)
    if not speech.info.drafts:
        raise SettingError(f"{speech.info.title} has no draft to propose tokens; train one in Training.")
    own = rule_of(token_groups.TECHNIQUE, task.setting, speech.info.knobs, task.knobs["rule"] == PUBLISHED)
    sentences = judged_utterances(task.utterance, int(task.knobs["sentences"]))
    work = Stages(task.observer, 100 * (len(sentences) + 1))
    pairs = []
    for number, one in enumerate(sentences, start=1):
        pairs.append(_distributions(speech, task, one, work.part(100, f"Sentence {number} of {len(sentences)}")))
    p, q = (torch.cat(part) for part in zip(*pairs, strict=True))
    tokens = speech.own.tokens
    finding = work.part(100, "Comparing groups")
    sizes = sorted({*SIZES, int(own["largest"])})
    around = neighbourhoods(directions(tokens, str(own["space"])), max(sizes), finding)
    possible = torch.where(q > 0, p, 0.0) if own["within"] else p
    accepted: dict[int, list[float]] = {}
    for size in sizes:
        accepted[size] = []
        for cosine in COSINES:
            task.observer.check()
            groups = TokenGroups(around.nearest(size).groups(cosine, int(own["smallest"])), tokens.rows, tokens.device)
            shared = torch.minimum(groups.masses(possible), groups.masses(q)).sum(-1)
            accepted[size].append(100 * float(shared.mean()))
    barred = q <= 0 if own["within"] else torch.zeros_like(q, dtype=torch.bool)
    tolerated = {}
    for beta in TOLERANCES:
        stays = acceptance(p, q, beta, barred).clamp(max=1.0)
        tolerated[beta] = 100 * float(torch.where(p > 0, p * stays, 0.0).sum(-1).mean())
    return Findings((_panel(accepted, tolerated),), _caption(accepted, tolerated, len(q), own), 1, sentences)


def _distributions(
    speech: LanguageSpeech, task: Task, one: Utterance, observer: ProgressStage
) -> tuple[Tensor, Tensor]:
    """p and q (n, ids) at the target's tokens of the first passage of ``one``."""
    import torch

    from paretone.sampling.autoregressive import after_prompt, within_length

    plan = resolve(speech.info, task.setting.baseline)
    networks = speech.networks(replace(plan, draft=speech.info.drafts[0]), observer)
    works = speech.internals(speech.script(one.text, one.voice, plan, observer), observer.check)
    spoken = [token for cycle in works.decoding for token in cycle.tokens]
    found = []
    for network in (networks.draft, networks.target):
        assert network is not None
        with torch.inference_mode():
            reader = after_prompt(network.tokens, works.request, len(spoken))
            scores = within_length(reader.logits(spoken, len(spoken)), network.tokens, works.request, len(spoken))
            found.append(works.sampler.probabilities(scores, spoken))
    return found[0], found[1]


def _panel(accepted: dict[int, list[float]], tolerated: dict[float, float]) -> Lines:
    curves = [Curve(f"groups of up to {size}", COSINES, tuple(found)) for size, found in accepted.items()]
    ends = COSINES[0], COSINES[-1]
    curves += [
        Curve("token by token" if not beta else f"tolerance β = {beta:g}", ends, (found, found), reference=True)
        for beta, found in tolerated.items()
    ]
    return Lines("Accepted drafted tokens", Axis("Similarity θ"), Axis("Accepted", "%"), tuple(curves))


def _caption(accepted: dict[int, list[float]], tolerated: dict[float, float], tokens: int, knobs: Values) -> str:
    best = {size: max(range(len(COSINES)), key=found.__getitem__) for size, found in accepted.items()}
    said = ", ".join(
        f"{accepted[size][place]:.0f} % in groups of up to {size} (θ = {COSINES[place]:g})"
        for size, place in best.items()
    )
    relaxed = listed(f"{found:.0f} % at β = {beta:g}" for beta, found in tolerated.items() if beta)
    where = "that scores tokens" if knobs["space"] == SPACES[0] else "that embeds tokens"
    rule = "only tokens that the model may draw" if knobs["within"] else "any token, as published"
    return (
        f"The model would accept {tolerated[0.0]:.0f} % of drafted tokens token by token; at most {said}. A tolerance "
        f"accepts {relaxed}; groups and tolerance apply to {rule}. Groups are exact for groups, a tolerance for "
        f"nothing. {tokens} tokens, compared by rows of the table {where}; the draft reads the whole prompt here."
    )


VIEW = View(
    name="token-groups",
    title="PCG: similarity and size of groups",
    question="How many drafted tokens are accepted in groups, and how many with a tolerance?",
    source="Principled coarse-grained acceptance (arXiv 2511.13732)",
    families=("language",),
    knobs=lambda layers: (sentences_knob(2, "spoken plainly"), RULE),
    compute=compute,
)
