from collections import namedtuple

import torch
from torch import nn

from paretone.audio.mel import MelFrontEnd, resample_prompt
from paretone.audio.recording import read_recording
from paretone.front_end.phones import PHONES, PhoneVocabulary, labels
from paretone.front_end.pronunciations import HowToRead
from paretone.front_end.reading import NaturalReader
from paretone.models.families.flow import FlowSpeech
from paretone.models.families.passages import Decoded, Passages, Sampler
from paretone.models.files.checkpoints import fingerprint, loaded_strictly, read_weights
from paretone.models.loading import load_vocoder
from paretone.paths import resource
from paretone.sampling.flow import euler_steps
from paretone.sampling.guidance import ALL, NOTHING, guided_velocity, is_guided
from paretone.sampling.operations import OperationCounts

RATE, HOP, BANDS, WIDTH, LAYERS, KERNEL = 24000, 256, 100, 128, 5, 5
MEAN, SPREAD, NOTHING_SAID, WEIGHTS = -4.0, 3.0, len(PHONES), "model.safetensors"


class Velocity(nn.Module):
    def __init__(self):
        super().__init__()
        self.phones = nn.Embedding(len(PHONES) + 1, WIDTH)
        self.voice, self.time = nn.Linear(BANDS, WIDTH), nn.Sequential(nn.Linear(2, WIDTH), nn.SiLU())
        self.enter, self.leave = nn.Conv1d(BANDS, WIDTH, KERNEL, padding="same"), nn.Conv1d(WIDTH, BANDS, 1)
        convolutions = [nn.Conv1d(WIDTH, 2 * WIDTH, KERNEL, padding="same", dilation=1 + n) for n in range(LAYERS)]
        self.layers = nn.ModuleList(convolutions)

    def forward(self, state, time, ids, voice):  # (rows, frames, bands), (rows,), (rows, frames), (rows, bands)
        known = self.voice(voice) + self.time(torch.stack([time, 1 - time], dim=-1))
        hidden = self.enter(state.mT) + (self.phones(ids) + known[:, None]).mT
        for layer in self.layers:
            value, gate = layer(hidden).chunk(2, dim=1)
            hidden = hidden + value.tanh() * gate.sigmoid()
        return self.leave(hidden).mT

    def velocity(self, x, evaluation, run, plans=None, memory=None, probe=None):
        return self(x.expand(run.branches, -1, -1), run.times[evaluation].expand(run.branches), run.ids, run.voice)


Run = namedtuple("Run", "branches ids voice times")
Prompt = namedtuple("Prompt", "voice frames notes", defaults=(0, ()))
Passage = namedtuple("Passage", "text ids frames")


def mel_of(audio):
    recording = read_recording(audio)
    samples = resample_prompt(torch.from_numpy(recording.samples), recording.sample_rate, RATE)
    return (MelFrontEnd()(samples) - MEAN) / SPREAD


class PhoneFlow(FlowSpeech):
    def __init__(self, info, network, vocoder, device):
        super().__init__(info, network, device, HOP / RATE)
        self._vocoder, self._reader, self._vocabulary = vocoder, NaturalReader(), PhoneVocabulary(PHONES)

    def first_run(self, backbone):
        frames = torch.zeros(1, 8, BANDS, device=self._device)
        run = Run(1, frames[..., 0].long(), frames[:, 0], torch.zeros(1, device=self._device))
        self._vocoder.decode(backbone.velocity(frames, 0, run).mT)

    def prepare(self, text, voice, options, check, seed=None):
        pieces, notes = self._reader.pieces(text, HowToRead.of(options, seed))
        ids = [torch.from_numpy(labels(one.phones, one.mel_frames, self._vocabulary))[None] for one in pieces]
        passages = tuple(Passage(one.text, said, said.shape[1]) for one, said in zip(pieces, ids, strict=True))
        return Prompt(mel_of(voice.audio).mean(dim=1)), Passages(passages, notes)

    def begin(self, backbone, passage, prompt, times, options, branches=None):
        branches = branches or ((ALL, NOTHING) if is_guided(options["guidance"]) else (ALL,))
        ids = [torch.full_like(passage.ids, NOTHING_SAID) if one == NOTHING else passage.ids for one in branches]
        voice = [prompt.voice if one == ALL else torch.zeros_like(prompt.voice) for one in branches]
        parts = (torch.cat(ids), torch.cat(voice), torch.from_numpy(times))
        return Run(len(branches), *(one.to(self._device) for one in parts))

    def sampler(self, passage, times, seed, options):
        noise = torch.randn(1, passage.frames, BANDS, generator=torch.Generator().manual_seed(seed))
        return Sampler(noise.to(self._device), euler_steps(times))

    def guided(self, velocities, options):
        return guided_velocity(velocities, float(options["guidance"]))

    def decode(self, state, passage, prompt):
        mel = state[0] * SPREAD + MEAN
        return Decoded(self._vocoder.decode(mel.T[None])[0].cpu().numpy(), mel.cpu().numpy())

    def evaluation_cost(self, passage, options, branches=None):
        rows, layer = branches or 1 + is_guided(options["guidance"]), 4.0 * passage.frames * WIDTH * WIDTH * KERNEL
        return OperationCounts(0.0, layer, 2.0 * passage.frames * WIDTH * BANDS * (KERNEL + 1), LAYERS, rows)


def load(request):
    path = request.place / WEIGHTS
    network = loaded_strictly(Velocity, read_weights(path, request.check), str(path)).to(request.device)
    size = sum(one.numel() for one in network.parameters())
    found = {"checkpoint": str(path), "fingerprint": fingerprint(path, request.check), "sample_rate": RATE}
    info = request.info(**found, layers=LAYERS, branches=2, parameters=size, text_front_end="natural phones")
    vocoder = load_vocoder(resource("models", "natural-vocoder"), request.device)
    return PhoneFlow(info, network, vocoder, request.device)
