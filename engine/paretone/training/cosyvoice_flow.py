"""The flow of CosyVoice 2 or 3, from speech tokens to mel frames, as a subject of the training, with its speech."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paretone.models import load_model
from paretone.models.base import Voice
from paretone.models.cosyvoice2.adapter import CosySpeech
from paretone.models.cosyvoice2.checkpoint import OfficialFolder
from paretone.models.cosyvoice2.config import FRAMES_PER_TOKEN
from paretone.models.cosyvoice2.flow_networks import FlowEstimator, conditions
from paretone.models.cosyvoice2.front_end import VoicePrompts
from paretone.models.cosyvoice2.model import FLOW
from paretone.models.cosyvoice2.token_to_mel import AcousticPrompt, TokenFlow, official
from paretone.models.cosyvoice3.checkpoint import edition_of
from paretone.models.files.checkpoints import fingerprint
from paretone.sampling.guidance import is_guided
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting
from paretone.speaking import scripted
from paretone.training.batches import moved
from paretone.training.fine_tuning import (
    Arrays,
    Hear,
    Learning,
    Reading,
    Say,
    Speaker,
    SubjectOptions,
    own_readings,
    recorded_readings,
)
from paretone.training.flow_matching import Field, FlowMatchingOptions, drawn_times
from paretone.training.flow_subjects import OBJECTIVE, ClipSubject
from paretone.training.learner import LayerMatrices
from paretone.training.manifest import ManifestRow, require_both
from paretone.training.requests import Follower
from paretone.training.runs import Run

LONGEST_BEGINNING = 0.3
"""Largest share of a single clip that serves as its prompt, as in the official training."""
LAYER_MATRICES = LayerMatrices("_blocks.", apart_from="mlp")
"""Weights of an estimator that Muon trains."""


@dataclass(frozen=True)
class CosyClip:
    voice: str
    tokens: np.ndarray = field(repr=False)
    """(n,) speech tokens."""
    mel: np.ndarray = field(repr=False)
    """(2 · n, bands) float16."""
    speaker: np.ndarray = field(repr=False)
    """(width,) the speaker's embedding."""
    prompt: int = 0
    """Number of first tokens that are a prompt."""

    @property
    def frames(self) -> int:
        return len(self.mel)


@dataclass(frozen=True)
class CosyProblem:
    """A batch with its noise; see :class:`paretone.training.flow_subjects.Problem`."""

    noised: Tensor
    target: Tensor
    times: Tensor
    span: Tensor
    """All frames: the prompt's come from noise as well."""
    conditions: Tensor
    """(B, 3 · bands, frames), zero where they are dropped."""
    drops_text: bool


class CosySubject(ClipSubject[FlowEstimator, CosyProblem, CosyClip]):
    """The estimator of a flow; the encoder of the tokens stays frozen."""

    layers = LAYER_MATRICES

    def __init__(
        self,
        flow: TokenFlow,
        clips: Sequence[CosyClip],
        held_out: Sequence[CosyClip],
        frames: int,
        seed: int,
        objective: FlowMatchingOptions = OBJECTIVE,
    ) -> None:
        """Of the conditions, ``objective`` drops the prompt's frames (``drop_audio``), or all (``drop_both``)."""
        self._flow, self.objective = flow, objective
        super().__init__(flow.estimator, clips, held_out, frames, seed)

    def add_interval(self, model: Any) -> None:
        model.add_interval()

    @torch.no_grad()
    def problem(
        self, items: Sequence[Sequence[CosyClip]], time: float | None, generator: torch.Generator, device: torch.device
    ) -> CosyProblem:
        count = len(items)
        objective, choice = self.objective, 1.0
        if time is None:
            times = drawn_times(count, objective.uniform_times, generator)
            if objective.drop_audio or objective.drop_both:
                choice = float(torch.rand(1, generator=generator))
        else:
            times = torch.full((count,), time)
        flow = self._flow.to(device)
        lengths = [sum(clip.frames for clip in item) for item in items]
        speech = torch.zeros(len(items), max(lengths), flow.config.bands)
        given = torch.zeros(len(items), 3 * flow.config.bands, max(lengths), device=device)
        shares = LONGEST_BEGINNING * torch.rand(len(items), generator=generator)
        for row, (item, length) in enumerate(zip(items, lengths, strict=True)):
            speech[row, :length] = torch.from_numpy(np.concatenate([clip.mel for clip in item]).astype(np.float32))
            tokens = list(itertools.chain.from_iterable(clip.tokens.tolist() for clip in item))
            beginning = item[0].prompt or int(shares[row] * len(tokens))
            known = FRAMES_PER_TOKEN * (len(item[0].tokens) if len(item) > 1 else beginning)
            prompt = torch.zeros(1, flow.config.bands, length, device=device)
            prompt[..., :known] = speech[row, :known].T.to(device)
            speaker = flow.speaker(torch.from_numpy(item[0].speaker).float()[None].to(device))
            given[row, :, :length] = conditions(flow.encoded(tokens), speaker, prompt)[0]
        if choice < objective.drop_both + objective.drop_audio:
            given[:, 0 if choice < objective.drop_both else -flow.config.bands :] = 0
        noise = torch.randn(speech.shape, generator=generator)
        weights = times[:, None, None]
        problem = CosyProblem(
            noised=(1 - weights) * noise + weights * speech,
            target=speech - noise,
            times=times,
            span=torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None],
            conditions=given,
            drops_text=choice < objective.drop_both,
        )
        return moved(problem, device)

    def field(self, model: FlowEstimator, problem: CosyProblem) -> Field:
        def velocity(state: Tensor, times: Tensor) -> Tensor:
            return model.at_once(state.mT, problem.conditions, times, problem.span).mT

        return velocity

    def bare(self, problem: CosyProblem) -> CosyProblem:
        return replace(problem, conditions=torch.zeros_like(problem.conditions), drops_text=True)

    def guided(self, model: FlowEstimator, problem: CosyProblem, guidance: Values) -> Field:
        conditional = self.field(model, problem)
        strength = float(guidance["guidance"])
        if not is_guided(strength):
            return conditional
        unconditional = self.field(model, self.bare(problem))

        def velocity(state: Tensor, times: Tensor) -> Tensor:
            learnt, other = conditional(state, times).float(), unconditional(state, times).float()
            return (1 + strength) * learnt - strength * other

        return velocity

    def official(self, weights: Mapping[str, Tensor], steps: int) -> dict[str, Tensor]:
        return official(weights)


def subject(run: Run, wanted: SubjectOptions) -> Learning:
    """See :attr:`paretone.models.declaration.Model.subject`."""
    request, follower = run.request, run.follower
    place = run.chosen.folder_at(request.folder)
    folder = OfficialFolder(place, check=follower.check, edition=edition_of(run.chosen.layout))
    folder.require_parts()
    base, flow = fingerprint(folder.place(FLOW), follower.check), folder.flow()
    parts = []
    if request.manifest:
        parts.append(recorded_readings(run, base, _recorded(folder, flow, follower)))
    if request.sentences:
        parts.append(own_readings(run, f"{base} {fingerprint(folder.checkpoint)}", _speaker(run)))
    training, held_out = ([one.clip(CosyClip) for part in parts for one in part[number]] for number in (0, 1))
    require_both(training, held_out)
    made = CosySubject(flow, training, held_out, wanted.frames, wanted.seed, wanted.objective or OBJECTIVE)
    return Learning(made, base, f"this checkpoint of {run.chosen.title}")


def _recorded(folder: OfficialFolder, flow: TokenFlow, follower: Follower) -> Callable[[], Hear]:
    """Encodes recordings by the release's own models; their texts are not needed."""

    def ready() -> Hear:
        prompts = VoicePrompts(
            folder.recording_encoder(), flow.config.tokens, flow.config.speaker_width, mel=folder.edition.mel
        )

        def hear(row: ManifestRow) -> Iterable[Reading]:
            heard = prompts(row.audio, follower.check).acoustic
            return [Reading(row.voice, _arrays(heard, np.zeros(0, np.int64), None, 0))]

        return hear

    return ready


def _speaker(run: Run) -> Speaker:
    """The whole model with default options."""
    request, follower, options = run.request, run.follower, run.chosen.options_with()

    def ready() -> Say:
        model = load_model(request.model, request.folder, request.variant, request.device, check=follower.check)
        assert isinstance(model, CosySpeech)

        def say(text: str, voice: Voice, seed: int) -> Iterable[Arrays]:
            setting = Setting(request.model, options, seed=seed)
            for prompt, tokens, mel in model.readings(scripted(model, text, voice, setting), follower.check):
                spoken = mel[0].T.cpu().numpy()
                yield _arrays(prompt, np.array(tokens, np.int64), spoken, prompt.tokens.shape[1])

        return say

    return Speaker(options, ready)


def _arrays(prompt: AcousticPrompt, tokens: np.ndarray, mel: np.ndarray | None, before: int) -> Arrays:
    """A recording and the speech after it, with ``before`` prompt tokens."""
    heard = prompt.mel[0].cpu().numpy()
    return {
        "tokens": np.concatenate([prompt.tokens[0].cpu().numpy(), tokens]),
        "mel": (heard if mel is None else np.concatenate([heard, mel])).astype(np.float16),
        "speaker": prompt.speaker[0].cpu().numpy(),
        "prompt": np.array(before),
    }
