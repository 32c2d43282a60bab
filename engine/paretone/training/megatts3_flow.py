"""A MegaTTS 3, bundled or released, as a subject of the training, and its training speech."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from paretone.errors import TrainingError
from paretone.models.files.checkpoints import fingerprint
from paretone.models.megatts3.checkpoint import OfficialFolder
from paretone.models.megatts3.config import LATENTS
from paretone.models.megatts3.dit import MegaDiT
from paretone.models.megatts3.front_end import OfficialFrontEnd
from paretone.models.megatts3.phones import MegaPassage, MegaPrompt, Timed
from paretone.models.minis.megatts3_mini import MegaMiniFolder
from paretone.sampling.guidance import branch_weights
from paretone.setting.knobs import Values
from paretone.training.fine_tuning import (
    Arrays,
    Hear,
    Learning,
    Reading,
    SubjectOptions,
    after_prompt,
    flow_speaker,
    natural_speech,
    own_readings,
    place_of,
    recorded_readings,
)
from paretone.training.flow_matching import (
    Field,
    LatentFlowOptions,
    LatentProblem,
    draw_latent_problem,
    latent_synthesis_problem,
)
from paretone.training.flow_subjects import ClipSubject
from paretone.training.latents import LAYER_MATRICES, LatentClip, collate_latents, latent_clip
from paretone.training.manifest import require_both
from paretone.training.requests import Follower
from paretone.training.runs import Run

OBJECTIVE = LatentFlowOptions(unprompted=0.0, drop_prompt=0.0, drop_both=0.0)


class MegaSubject(ClipSubject[MegaDiT, LatentProblem, LatentClip]):
    layers = LAYER_MATRICES

    def problem(
        self,
        items: Sequence[Sequence[LatentClip]],
        time: float | None,
        generator: torch.Generator,
        device: torch.device,
    ) -> LatentProblem:
        batch = collate_latents(items)
        if time is None:
            return draw_latent_problem(batch, OBJECTIVE, generator).to(device)
        return latent_synthesis_problem(batch, time, generator).to(device)

    def field(self, model: MegaDiT, problem: LatentProblem) -> Field:
        return _fields(model, (problem,))

    def guided(self, model: MegaDiT, problem: LatentProblem, guidance: Values) -> Field:
        weights = branch_weights(float(guidance["intelligibility"]), float(guidance["similarity"]))
        without_prompt = replace(problem, condition=torch.zeros_like(problem.condition))
        phones, tones = model.unknown(problem.phones, problem.tones)
        branches = (problem, without_prompt, replace(without_prompt, phones=phones, tones=tones))
        parts = [(weight, one) for weight, one in zip(weights, branches, strict=True) if weight]
        every = _fields(model, [one for _, one in parts])

        def velocity(state: Tensor, times: Tensor) -> Tensor:
            found = every(state, times).float().chunk(len(parts))
            return torch.stack([weight * one for (weight, _), one in zip(parts, found, strict=True)]).sum(0)

        return velocity

    def official(self, weights: Mapping[str, Tensor], steps: int) -> dict[str, Tensor]:
        return dict(weights)


def _fields(model: MegaDiT, branches: Sequence[LatentProblem]) -> Field:
    """Velocities under the conditions of each of ``branches`` of one speech; branch-major, in one pass."""

    def rows(part: Callable[[LatentProblem], Tensor]) -> Tensor:
        return torch.cat([part(one) for one in branches])

    prompt, mask = rows(lambda one: one.prompt), rows(lambda one: one.mask)
    with _attention(mask):
        known = model.conditions(
            rows(lambda one: one.condition),
            prompt,
            rows(lambda one: one.phones),
            rows(lambda one: one.tones),
            rows(lambda one: one.phones_of_frames),
            mask,
        )

    def velocity(state: Tensor, times: Tensor) -> Tensor:
        count = len(branches)
        with _attention(state):
            every = times.repeat(count, *[1] * (times.ndim - 1))
            return model.follow(state.repeat(count, 1, 1), prompt, known, every, mask)

    return velocity


def _attention(state: Tensor) -> AbstractContextManager[None]:
    """Attention kernel: on CPUs the math one, as in the training of the bundled model, since items are short and the
    fused backward pass is slower there. GPUs choose."""
    return sdpa_kernel(SDPBackend.MATH) if state.device.type == "cpu" else nullcontext()


NO_PHONES = Timed((), (), ())


def subject(run: Run, wanted: SubjectOptions) -> Learning:
    """See :attr:`paretone.models.declaration.Model.subject`."""
    request, follower, root = run.request, run.follower, place_of(run)
    released = None if MegaMiniFolder.is_at(root) else OfficialFolder(root, follower.check)
    if released is None and request.manifest:
        raise TrainingError(
            f"{run.chosen.title} learns from natural speech, or from what it says itself; leave recordings out."
        )
    if released is not None:
        released.require_parts()
    folder = released or MegaMiniFolder(root, follower.check)
    path = folder.weights_path if isinstance(folder, MegaMiniFolder) else folder.backbone_path
    base = fingerprint(path, follower.check)
    parts = []
    if released is not None and request.manifest:
        parts.append(recorded_readings(run, base, _recorded(released, follower), LATENTS))
    if request.sentences:  # Each after the recording of its voice.
        speaker = flow_speaker(request, run.chosen, wanted.guidance, _drawn, follower.check)
        parts.append(own_readings(run, base, speaker))
    training, held_out = ([one.clip(LatentClip) for part in parts for one in part[number]] for number in (0, 1))
    if not parts:
        natural = natural_speech(run, wanted.corpus)
        training, held_out = (list(map(latent_clip, part)) for part in (natural.training, natural.held_out))
    require_both(training, held_out)
    made = MegaSubject(folder.backbone(), training, held_out, wanted.frames, wanted.seed)
    return Learning(made, base, str(path))


def _recorded(folder: OfficialFolder, follower: Follower) -> Callable[[], Hear]:
    """Encodes recordings as the release does: with its aligner, and the latents next to them or its encoder."""

    def ready() -> Hear:
        front_end = OfficialFrontEnd.load(folder, folder.wavvae())
        return lambda row: [Reading(row.voice, _heard(front_end.prompt(row.audio, check=follower.check)))]

    return ready


def _drawn(prompt: MegaPrompt, passage: MegaPassage, state: np.ndarray) -> Arrays:
    return _arrays(passage, after_prompt(prompt.latents, state, prompt.frames), prompt.frames)


def _heard(prompt: MegaPrompt) -> Arrays:
    """Arrays of a whole recording, without a prompt."""
    passage = MegaPassage.of("", NO_PHONES, prompt.spoken)
    return _arrays(passage, prompt.latents[0, : passage.frames].numpy().astype(np.float16), 0)


def _arrays(passage: MegaPassage, latents: np.ndarray, prompt: int) -> Arrays:
    return {
        "latents": latents,
        "phones": passage.phones[0].numpy(),
        "tones": passage.tones[0].numpy(),
        "phones_of_frames": passage.mel2ph[0].numpy(),
        "prompt": np.array(prompt),
    }
