"""An F5-TTS model that speaks: text and a voice in, audio out; with what was measured and seen on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine import device as devices
from engine.errors import PlainError, ProfileError, SettingError
from engine.knobs import Values, checked
from engine.models.base import (
    AttentionCapture,
    ModelInfo,
    Observer,
    OperationCounts,
    Piece,
    StepReport,
    Synthesis,
    Voice,
)
from engine.models.f5.chunks import CrossFader
from engine.models.f5.config import HOP, SAMPLE_RATE
from engine.models.f5.dit import Conditioning, DiT
from engine.models.f5.passages import Passage, Passages, Prompt, TextFrontEnd
from engine.models.f5.unett import UNetT
from engine.models.vocos import Vocos
from engine.sampling.flow import euler_steps, integrate, sampling_grid
from engine.sampling.guidance import guided_velocity, is_guided
from engine.sampling.schedules import evaluation_times
from engine.sampling.skipping import LayerMemory, SkipPlan
from engine.setting import Setting
from engine.take import Measurements, Trace
from engine.techniques import conflict, technique
from engine.techniques.ditreducio.metrics import diagonal_similarity
from engine.techniques.ditreducio.subject import Subject
from engine.techniques.ditreducio.table import Belonging, StrategyTable

LARGEST_MAP = 512
"""Captured attention maps are pooled to at most this many queries and keys."""


@dataclass
class _Clock:
    """Seconds spent on each part of a synthesis."""

    started: float
    text: float = 0.0
    backbone: float = 0.0
    decoder: float = 0.0
    first_audio: float = 0.0


class F5Speech:
    """A loaded F5-TTS or E2-TTS model: backbone, vocoder, text front end. See
    :class:`engine.models.base.SpeechModel`."""

    def __init__(
        self,
        info: ModelInfo,
        backbone: DiT | UNetT,
        vocoder: Vocos,
        front_end: TextFrontEnd,
        read_prompt: Callable[[Voice], Prompt],
    ) -> None:
        self.info = info
        self._backbone = backbone
        self._vocoder = vocoder
        self._front_end = front_end
        self._read_prompt = read_prompt
        self._device = backbone.proj_out.weight.device

    @torch.inference_mode()
    def warm_up(self) -> None:
        """Run everything once on a second of silence: first runs choose kernels and allocate, which no take should pay
        for."""
        frames = SAMPLE_RATE // HOP
        silence = torch.zeros(1, frames, self._backbone.config.mel_dim, device=self._device)
        ids = torch.zeros(1, 1, dtype=torch.long, device=self._device)
        run = self._backbone.begin(silence, ids, sampling_grid(1)[:-1], guided=True)
        self._vocoder.decode(self._backbone.velocity(silence, 0, run)[:1].transpose(1, 2))
        devices.synchronise(self._device)

    def synthesise(
        self,
        text: str,
        voice: Voice,
        setting: Setting,
        artefacts: tuple[StrategyTable, ...],
        observer: Observer,
    ) -> Generator[Piece, None, Synthesis]:
        clock = _Clock(time.perf_counter())
        options = self._options(setting)
        plan, table = self._plan(setting, artefacts)
        prompt, prepared = self._prepare(text, voice, options)
        clock.text = time.perf_counter() - clock.started
        times = sampling_grid(options["steps"], options["spacing"], options["sway"])
        fader = CrossFader.of_seconds(options["cross_fade"], SAMPLE_RATE)
        mels, pieces, step_seconds, chunk_seconds = [], [], [], []
        spent = full = 0.0

        for number, passage in enumerate(prepared.passages):
            reports: list[float] = []
            began = time.perf_counter()

            def on_step(
                step: int,
                reports: list[float] = reports,
                number: int = number,
                began: float = began,
            ) -> None:
                observer.check()
                now = time.perf_counter() - began
                reports.append(now - sum(reports))
                observer.step(
                    StepReport(
                        number,
                        len(prepared.passages),
                        step,
                        len(times) - 1,
                        reports[-1],
                    )
                )

            mel = self._sample(passage, prompt, times, options, setting.seed, plan, on_step)
            sampled = time.perf_counter()
            samples = self._decode(mel, prompt)
            finished = time.perf_counter()
            clock.backbone += sampled - began
            clock.decoder += finished - sampled
            operations = self._backbone.operations(passage.frames, is_guided(options["guidance"]))
            full += operations.evaluation
            spent += operations.evaluation * (table.ops_ratio(operations) if table else 1.0)
            mels.append(mel.cpu().numpy())
            step_seconds.append(tuple(reports))
            chunk_seconds.append(len(samples) / SAMPLE_RATE)
            last = number == len(prepared.passages) - 1
            ready = fader.push(samples)
            if last:
                ready = np.concatenate([ready, fader.finish()])
            if not clock.first_audio:
                clock.first_audio = time.perf_counter() - clock.started
            if len(ready):
                pieces.append(ready)
                yield Piece(ready)

        samples = np.concatenate(pieces)
        return Synthesis(
            samples,
            SAMPLE_RATE,
            Measurements(
                seconds=time.perf_counter() - clock.started,
                audio_seconds=len(samples) / SAMPLE_RATE,
                first_audio_seconds=clock.first_audio,
                text_seconds=clock.text,
                backbone_seconds=clock.backbone,
                decoder_seconds=clock.decoder,
                evaluations=len(evaluation_times(times, options["solver"])) * len(prepared.passages),
                ops_ratio=spent / full,
                device=self.info.device,
            ),
            Trace(
                tuple(step_seconds),
                tuple(passage.text for passage in prepared.passages),
                tuple(chunk_seconds),
                np.concatenate(mels),
            ),
            (*prompt.notes, *prepared.notes),
        )

    def operations(self, text: str, voice: Voice, setting: Setting) -> OperationCounts:
        options = self._options(setting)
        _, prepared = self._prepare(text, voice, options)
        return self._backbone.operations(prepared.passages[0].frames, is_guided(options["guidance"]))

    def belonging(self, setting: Setting) -> Belonging:
        info, options = self.info, self._options(setting)
        return Belonging.of(info.id, info.fingerprint, info.variant, info.knobs, options)

    @torch.inference_mode()
    def subject(self, text: str, voice: Voice, setting: Setting) -> tuple[Subject, str]:
        """What a calibration works on, and the part of ``text`` that it speaks: the first passage."""
        options = self._options(setting)
        prompt, prepared = self._prepare(text, voice, options)
        passage = prepared.passages[0]
        times = sampling_grid(options["steps"], options["spacing"], options["sway"])
        run = self._begin(passage, prompt, times, options)
        noise = self._noise(passage, setting.seed)
        guidance = float(options["guidance"])
        subject = Subject(
            self._skippable(),
            run,
            noise,
            times,
            lambda velocities: guided_velocity(velocities, guidance),
            euler_steps(times),
            run.branches,
            self.belonging(setting),
            prompt.frames,
        )
        return subject, passage.text

    @torch.inference_mode()
    def capture_attention(
        self,
        text: str,
        voice: Voice,
        setting: Setting,
        artefacts: tuple[StrategyTable, ...],
        layer: int,
        step: int,
        observer: Observer,
    ) -> AttentionCapture:
        backbone = self._skippable()
        options = self._options(setting)
        plan, _ = self._plan(setting, artefacts)
        prompt, prepared = self._prepare(text, voice, options)
        passage = prepared.passages[0]
        times = sampling_grid(options["steps"], options["spacing"], options["sway"])
        if not (0 <= layer < backbone.layers and 0 <= step < len(times) - 1):
            raise SettingError(
                f"There is no layer {layer + 1} at step {step + 1}: the model has {backbone.layers} layers, "
                f"the grid {len(times) - 1} steps."
            )
        run = self._begin(passage, prompt, times, options)

        def on_step(number: int, state: Tensor) -> None:
            observer.check()
            observer.step(StepReport(0, 1, number, step + 1, 0.0))

        velocity, noise = self._velocity(run, options, plan), self._noise(passage, setting.seed)
        state = integrate(velocity, noise, times[: step + 1], options["solver"], on_step)
        looked: dict[str, Tensor] = {}

        def look(index: int, name: str, value: Tensor) -> None:
            if index == layer and name == "attention_input":
                looked[name] = value

        # The layer that is looked at computes everything here, whatever the plan says of it: the question is what it
        # sees.
        evaluation = step if options["solver"] == "euler" else 2 * step
        hidden = backbone.enter(state, run)
        for index in range(layer + 1):
            hidden = backbone.layer(index, hidden, evaluation, run, look=look)
        maps = backbone.attention_maps(layer, looked["attention_input"], run, LARGEST_MAP)
        query, key = backbone.attention_map_inputs(layer, looked["attention_input"])
        similarities = tuple(diagonal_similarity(query[row][None], key[row][None]) for row in range(len(query)))
        return AttentionCapture(
            layer,
            step,
            passage.frames,
            prompt.frames,
            maps.float().cpu().numpy(),
            similarities,
        )

    def _options(self, setting: Setting) -> Values:
        return checked(self.info.knobs, setting.options, self.info.title)

    def _skippable(self) -> DiT:
        if not isinstance(self._backbone, DiT):
            raise SettingError(
                f"{self.info.title} is not a diffusion transformer: DiTReducio and attention views need F5-TTS."
            )
        return self._backbone

    def _plan(
        self, setting: Setting, artefacts: Sequence[StrategyTable]
    ) -> tuple[SkipPlan | None, StrategyTable | None]:
        """The skip plan that the setting names, checked against what is loaded."""
        reason = conflict(setting)
        if reason:
            raise SettingError(reason)
        for entry in setting.techniques:
            title = technique(entry.technique).title
            table = next((one for one in artefacts if one.fingerprint == entry.artefact), None)
            if table is None:
                raise SettingError(f"{title} has no strategy table yet; calibrate first, or import one.")
            self._skippable()
            mismatch = table.belonging.mismatch(self.belonging(setting))
            if mismatch:
                raise ProfileError(f"The strategy table cannot be used here: {mismatch}. Calibrate again.")
            if table.layers != self.info.layers:
                raise ProfileError(
                    f"The strategy table has {table.layers} layers, but {self.info.title} has {self.info.layers}."
                )
            return SkipPlan(table), table
        return None, None

    def _prepare(self, text: str, voice: Voice, options: Values) -> tuple[Prompt, Passages]:
        prompt = self._read_prompt(voice)
        return prompt, self._front_end.passages(text, prompt, float(options["speed"]), bool(options["quick_start"]))

    def _begin(self, passage: Passage, prompt: Prompt, times: np.ndarray, options: Values) -> Conditioning:
        frames = min(prompt.mel.shape[1], passage.frames)
        canvas = torch.zeros(1, passage.frames, prompt.mel.shape[2], device=self._device)
        canvas[:, :frames] = prompt.mel[:, :frames].to(self._device)
        evaluations = evaluation_times(times, options["solver"])
        return self._backbone.begin(
            canvas,
            passage.ids.to(self._device),
            evaluations,
            is_guided(options["guidance"]),
        )

    def _noise(self, passage: Passage, seed: int) -> Tensor:
        # Drawn on the CPU, so that one seed is one noise on every device; every passage starts from the seed, as
        # upstream.
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(1, passage.frames, self._backbone.config.mel_dim, generator=generator).to(self._device)

    @torch.inference_mode()
    def _sample(
        self,
        passage: Passage,
        prompt: Prompt,
        times: np.ndarray,
        options: Values,
        seed: int,
        plan: SkipPlan | None,
        on_step: Callable[[int], None],
    ) -> Tensor:
        """The new speech's mel, (frames, bands)."""
        run = self._begin(passage, prompt, times, options)
        velocity = self._velocity(run, options, plan)
        mel = integrate(
            velocity,
            self._noise(passage, seed),
            times,
            options["solver"],
            lambda step, state: on_step(step),
        )
        devices.synchronise(self._device)
        return mel[0, prompt.frames :]

    def _velocity(self, run: Conditioning, options: Values, plan: SkipPlan | None) -> Callable[[Tensor, int], Tensor]:
        strength = float(options["guidance"])
        if plan is None:
            return lambda state, evaluation: guided_velocity(self._backbone.velocity(state, evaluation, run), strength)
        memory = [LayerMemory() for _ in range(self.info.layers)]
        return lambda state, evaluation: guided_velocity(
            self._backbone.velocity(state, evaluation, run, plan.at(evaluation), memory),
            strength,
        )

    @torch.inference_mode()
    def _decode(self, mel: Tensor, prompt: Prompt) -> np.ndarray:
        samples = prompt.level.restored(self._vocoder.decode(mel.T[None])[0]).cpu().numpy()
        if not np.isfinite(samples).all():
            raise PlainError(
                "The synthesis gave values that are not numbers: the checkpoint is damaged or the precision too low; "
                "try another checkpoint or full precision."
            )
        return samples
