"""A MegaTTS 3, bundled or released, as a subject of the training, and its training speech: clips of latents with the
phone of every mel frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from paretone.errors import TrainingError
from paretone.front_end.phones import PHONES
from paretone.models.files.checkpoints import fingerprint
from paretone.models.megatts3.checkpoint import OfficialFolder
from paretone.models.megatts3.config import LATENT_STRIDE, LATENTS
from paretone.models.megatts3.dit import MegaDiT
from paretone.models.megatts3.front_end import OfficialFrontEnd
from paretone.models.megatts3.phones import ENGLISH_TONE, MegaPassage, MegaPrompt, Timed
from paretone.models.minis.megatts3_mini import DURATION_HOP, MegaMiniFolder, phones_of_frames
from paretone.models.minis.natural_decoder import SAMPLE_RATE
from paretone.models.minis.natural_vocoder import grouped
from paretone.sampling.guidance import branch_weights
from paretone.setting.knobs import Values
from paretone.training.batches import moved
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
    recorded_readings,
)
from paretone.training.flow_matching import (
    Field,
    LatentBatch,
    LatentProblem,
    draw_latent_problem,
    latent_synthesis_problem,
)
from paretone.training.flow_subjects import ClipSubject
from paretone.training.learner import LayerMatrices
from paretone.training.manifest import require_both
from paretone.training.natural_corpus import NaturalClip, voice_frames
from paretone.training.requests import Follower
from paretone.training.runs import Run

LAYER_MATRICES = LayerMatrices("encoder.layers.", apart_from="attention_norm")
"""Weights of a :class:`paretone.models.megatts3.dit.MegaDiT` that Muon trains."""
NUMBERS = {phone: number for number, phone in enumerate(PHONES, start=1)}
"""Rows of the phone table; 0 is padding."""


@dataclass(frozen=True)
class LatentClip:
    voice: str
    latents: np.ndarray = field(repr=False)
    """(n, latent) float16."""
    phones: np.ndarray = field(repr=False)
    """(phones,) numbers of the phone table."""
    phones_of_frames: np.ndarray = field(repr=False)
    """(n · stride,) indices into ``phones``, from 1."""
    tones: np.ndarray | None = field(default=None, repr=False)
    """(phones,) official tone numbers; ``None``: English."""
    prompt: int = 0
    """Latent frames of prompt at the beginning."""

    @property
    def frames(self) -> int:
        return len(self.latents)

    @property
    def all_tones(self) -> np.ndarray:
        return np.full(len(self.phones), ENGLISH_TONE) if self.tones is None else self.tones


def collate_latents(items: Sequence[Sequence[LatentClip]]) -> LatentBatch:
    """Batch whose items are one clip, or two of one voice joined; a prompt inside a clip counts as the first."""
    lengths = [sum(clip.frames for clip in item) for item in items]
    spoken = [np.concatenate([clip.phones for clip in item]) for item in items]
    first = items[0][0]
    stride = len(first.phones_of_frames) // first.frames
    latents = torch.zeros(len(items), max(lengths), first.latents.shape[1])
    phones, tones = (torch.zeros(len(items), max(map(len, spoken)), dtype=torch.long) for _ in range(2))
    places = torch.zeros(len(items), max(lengths) * stride, dtype=torch.long)
    for row, item in enumerate(items):
        phones[row, : len(spoken[row])] = torch.from_numpy(spoken[row])
        tones[row, : len(spoken[row])] = torch.from_numpy(np.concatenate([clip.all_tones for clip in item]))
        start = before = 0
        for clip in item:
            end = start + clip.frames
            latents[row, start:end] = torch.from_numpy(clip.latents.astype(np.float32))
            places[row, start * stride : end * stride] = torch.from_numpy(clip.phones_of_frames + before)
            start, before = end, before + len(clip.phones)
    joins = [item[0].frames if len(item) > 1 else item[0].prompt for item in items]
    return LatentBatch(latents, phones, tones, places, torch.tensor(lengths), torch.tensor(joins))


def latent_clip(clip: NaturalClip) -> LatentClip:
    """``clip`` as model input."""
    latents, phones = grouped(voice_frames(clip)), clip.phones
    numbers = np.array([NUMBERS[name] for name, _, _ in phones], np.int64)
    places = phones_of_frames(phones, len(latents) * LATENT_STRIDE, SAMPLE_RATE, DURATION_HOP)
    return LatentClip(clip.voice, latents.numpy(), numbers, places)


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
            return moved(draw_latent_problem(batch, generator), device)
        return moved(latent_synthesis_problem(batch, time, generator), device)

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
    request, follower, root = run.request, run.follower, run.chosen.folder_at(run.request.folder)
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
