"""CosyVoice 2 and 3: implementation of :class:`paretone.models.families.language.LanguageSpeech`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from paretone import device as devices
from paretone.errors import CheckpointError, PlainError
from paretone.last_used import LastUsed
from paretone.models.base import AttentionCapture, ModelInfo, OfficialIds, Voice
from paretone.models.cosyvoice2.checkpoint import COSYVOICE2, Edition, OfficialFolder
from paretone.models.cosyvoice2.config import TOKEN_RATE
from paretone.models.cosyvoice2.front_end import CosyPrompt, VoicePrompts, prepare
from paretone.models.cosyvoice2.hift import AudioStream, Hift, SeededNoise
from paretone.models.cosyvoice2.language_model import CosyNames, LanguageModel, PromptIds
from paretone.models.cosyvoice2.mel_flow import NOBODY, MelStream, PlannedMel
from paretone.models.cosyvoice2.model import FLOW, LANGUAGE_MODEL
from paretone.models.cosyvoice2.text import TextTokenizer
from paretone.models.cosyvoice2.token_to_mel import AcousticPrompt, TokenFlow
from paretone.models.families.evaluations import FlowInternals, FlowScript
from paretone.models.families.language import LanguageInternals, LanguageSpeech
from paretone.models.families.language_network import LanguageNetwork, Networks
from paretone.models.families.passages import Decoded, Passages, TokenDecoder, TokenPassage
from paretone.models.files.checkpoints import fingerprint
from paretone.models.files.trained_weights import with_flow_weights
from paretone.models.loading import LoadRequest
from paretone.observer import SILENT, Check, Observer
from paretone.sampling.autoregressive import Request
from paretone.sampling.calibration_target import CalibrationTarget
from paretone.sampling.flow import Run
from paretone.sampling.operations import OperationCounts
from paretone.sampling.tokens import RepetitionAware, TokenSampler
from paretone.setting.knobs import Values
from paretone.setting.plan import FlowPlan, LanguagePlan


def sped_up(mel: Tensor, speed: float) -> Tensor:
    """Resample ``mel`` (1, bands, n) linearly to (1, bands, n / speed)."""
    length = mel.shape[-1]
    return mel if speed == 1 or not length else F.interpolate(mel, size=int(length / speed), mode="linear")


class CosyDecoder(TokenDecoder):
    """Flow and vocoder for one passage: audio while tokens are decoded, equal to one run at the end.

    A chunk of tokens is vocoded as soon as it and the flow's look-ahead are complete; chunks are counted from the start
    of the prompt, for an early first one. Upstream lets the last chunk attend to everything; here it attends as if more
    followed. All audio comes at the end if ``at_once``, which takes less memory and time, and at a ``speed`` other than
    1, because frames then depend on the total length.
    """

    def __init__(
        self,
        flow: PlannedMel | TokenFlow,
        vocoder: Hift,
        prompt: AcousticPrompt,
        seed: int = 0,
        speed: float = 1.0,
        at_once: bool = False,
        edition: Edition = COSYVOICE2,
        script: FlowScript | None = None,
    ) -> None:
        """``script``: of ``flow``, by default with its usual options. Raises :class:`paretone.errors.AudioError` for a
        prompt whose parts do not belong together."""
        self._vocoder, self._seed, self._speed = vocoder, seed, speed
        self._edition, self._silent = edition, 0
        self._stream = partial(MelStream, flow, prompt, script=script, check=lambda: self.check())
        self._frames = self._stream(at_once=at_once or speed != 1)
        self._audio = self._vocoded()
        self._mels: list[Tensor] = []
        self.vocoder_seconds: float = 0.0

    @property
    def saved(self) -> frozenset[str]:  # type: ignore[override]  # read only
        return self._frames.saved

    @property
    def operations(self) -> float:  # type: ignore[override]  # read only
        return self._frames.operations

    @property
    def reference_operations(self) -> float:  # type: ignore[override]  # read only
        return self._frames.reference_operations

    def push(self, tokens: Sequence[int]) -> np.ndarray:
        """See :class:`TokenDecoder`. Raises :class:`paretone.errors.TextError` after five minutes."""
        mel = self._frames.push(self._spoken(tokens))
        self._mels.append(mel)
        return self._heard(mel) if mel.shape[-1] else _silence()

    def finish(self) -> np.ndarray:
        mel = sped_up(self._frames.finish(), self._speed)
        self._mels.append(mel)
        return self._heard(mel, last=True) if any(one.shape[-1] for one in self._mels) else _silence()

    def whole(self, tokens: Sequence[int]) -> Decoded:
        """See :class:`TokenDecoder`: one pass of flow and vocoder each, with the attention of streaming."""
        frames, self._silent = self._stream(), 0
        mel = sped_up(frames.whole(self._spoken(tokens)), self._speed)
        samples = _samples(self._vocoded().push(mel, last=True)) if mel.shape[-1] else _silence()
        return Decoded(samples, mel[0].T.cpu().numpy())

    def _spoken(self, tokens: Sequence[int]) -> list[int]:
        """``tokens`` without those of long silence."""
        kept = []
        for token in tokens:
            self._silent = self._silent + 1 if token in self._edition.silent else 0
            if self._silent <= self._edition.most_silent:
                kept.append(token)
        return kept

    @property
    def mel(self) -> np.ndarray | None:
        """Mel (frames, bands) of the speech so far."""
        return torch.cat(self._mels, dim=-1)[0].T.cpu().numpy() if self._mels else None

    def _vocoded(self) -> AudioStream:
        return AudioStream(self._vocoder, SeededNoise(self._seed, self._vocoder.config))

    def _heard(self, mel: Tensor, last: bool = False) -> np.ndarray:
        """Samples of ``mel``, timed apart from the flow."""
        devices.synchronise(mel.device)
        began = time.perf_counter()
        samples = _samples(self._audio.push(mel, last))
        self.vocoder_seconds += time.perf_counter() - began
        return samples


def _samples(audio: Tensor) -> np.ndarray:
    return audio[0].float().cpu().numpy()


def _silence() -> np.ndarray:
    return np.zeros(0, np.float32)


TEXT, MARKS = "text", "marks"
"""Names of the tables that embed prompts."""
WARM_UP_TOKENS = 4
MOST_READ = 8


class CosySpeech(LanguageSpeech):
    elements = frozenset({"strong", "laughter"})

    def __init__(
        self,
        info: ModelInfo,
        folder: OfficialFolder,
        model: LanguageModel,
        flow: TokenFlow,
        vocoder: Hift,
        tokenizer: TextTokenizer,
        prompts: VoicePrompts,
        flow_base: str,
    ) -> None:
        """``model`` is the plain one of ``folder``; only its optimised form is kept. ``flow_base`` is the fingerprint
        of the file of ``flow``."""
        super().__init__(
            info, network_of(model), TOKEN_RATE, lambda student: network_of(folder.student(student)), folder.draft
        )
        self.flow, self.vocoder, self._edition = flow, vocoder, folder.edition
        self._names = CosyNames(len(model.text), folder.edition.layout)
        self.tokenizer, self._prompts = tokenizer, prompts
        self._flow_base, self._flow_path = flow_base, folder.root / FLOW
        self._mel = PlannedMel(flow, info.of_flow, self._read_mel_script)
        self._tokens: LastUsed[tuple[int, ...]] = LastUsed(MOST_READ)
        """Speech tokens of the first passages of scripts, for preparations of the flow."""

    def look_for_weights(self, check: Check = lambda: None) -> ModelInfo:
        info = super().look_for_weights(check)
        self.info = with_flow_weights(info, self._flow_path, self._flow_base, check)
        return self.info

    def make_ready(self, plan: LanguagePlan, observer: Observer = SILENT, voice: Voice | None = None) -> None:
        super().make_ready(plan, observer, voice)
        if plan.flow is not None:
            self._mel.ready(plan.flow, voice, observer)

    def _network(self, plan: LanguagePlan, voice: Voice, observer: Observer) -> Networks:
        if plan.flow is not None:
            self._mel.ready(plan.flow, voice, observer)
        return super()._network(plan, voice, observer)

    def readings(
        self, script: Any, check: Check = lambda: None
    ) -> Iterator[tuple[AcousticPrompt, tuple[int, ...], Tensor]]:
        """Run the flow on each passage without vocoding: yield the voice, the speech tokens, and their mel frames (1,
        bands, n). Speech that did not end by itself is skipped. Raises :class:`PlainError`."""
        prompt: AcousticPrompt = cast("CosyPrompt", script.prompt).voice.acoustic
        for passage in script.passages:
            tokens, ended = self._decoded(script, passage, check)
            if tokens and ended:
                yield prompt, tokens, MelStream(self._mel, prompt, check=check).whole(tokens)

    def _decoded(self, script: Any, passage: Any, check: Check) -> tuple[tuple[int, ...], bool]:
        """Speech tokens of a passage, and whether it ended by itself."""
        cycles = list(self._decoding(script, passage, self._requests(script, passage), check))
        return tuple(token for cycle in cycles for token in cycle.tokens), bool(cycles) and cycles[-1].stopped

    # --- The flow, for preparations: see :class:`paretone.models.base.FlowModel` --------------------------------------
    def replanned(self, script: Any, plan: LanguagePlan, observer: Observer = SILENT) -> Any:
        return replace(script, plan=plan, network=self._network(plan, script.voice, observer))

    def operations(self, script: Any) -> OperationCounts:
        return self._mel.operations(self._mel_script(script))

    def last_state(self, script: Any, check: Check = lambda: None) -> np.ndarray:
        return self._mel.last_state(self._mel_script(script, check), check)

    def calibration_target(self, script: Any) -> CalibrationTarget:
        return self._mel.calibration_target(self._mel_script(script))

    def capture_attention(self, script: Any, layer: int, step: int, observer: Observer = SILENT) -> AttentionCapture:
        return self._mel.capture_attention(self._mel_script(script, observer.check), layer, step, observer)

    def internals(self, script: Any, check: Check = lambda: None) -> LanguageInternals:
        works = super().internals(script, check)

        def flow(tokens: Sequence[int]) -> FlowInternals:
            def decode(state: Tensor) -> Decoded:
                stream = AudioStream(self.vocoder, SeededNoise(script.seed, self.vocoder.config))
                return Decoded(_samples(stream.push(state[:, script.prompt.voice.acoustic.frames :].mT, last=True)))

            mel = self._of_tokens(script, tokens)
            taken = self._mel.taken_apart(mel, decode, len(tokens) / TOKEN_RATE, check)

            def begin() -> Run:
                self._of_tokens(script, tokens)  # What all evaluations share begins with the encoder of tokens.
                return taken.begin()

            return replace(taken, begin=begin)

        return replace(works, flow=flow)

    def _read_mel_script(self, text: str, voice: Voice, plan: FlowPlan, observer: Observer) -> FlowScript:
        """``text`` with the language model's usual options, up to its tokens."""
        whole = LanguagePlan.begin(self.info, Values({one.name: one.default for one in self.info.knobs}), plan.seed)
        return self._mel_script(self.script(text, voice, replace(whole, flow=plan), observer), observer.check)

    @torch.inference_mode()
    def _mel_script(self, script: Any, check: Check = lambda: None) -> FlowScript:
        """The first passage as one for the flow, whose tokens are decoded once."""
        passage, plan = script.passages[0], script.plan
        key = passage, script.prompt.ids, script.voice, replace(plan, flow=None, notes=()), script.seed
        tokens = self._tokens.of(key, lambda: self._decoded(script, passage, check)[0])
        if not tokens:
            raise PlainError(f"{self.info.title} {self.silent}; try another seed, or a text with more words.")
        return self._of_tokens(script, tokens, passage.text)

    def _of_tokens(self, script: Any, tokens: Sequence[int], text: str = "") -> FlowScript:
        """The speech tokens of a passage as a script of the flow."""
        prompt: AcousticPrompt = cast("CosyPrompt", script.prompt).voice.acoustic
        mel = self._mel.planned(script.plan.flow, script.voice)
        return replace(mel, prompt=prompt, passages=(self._mel.whole(prompt, tokens, mel, text),))

    @torch.inference_mode()
    def first_run(self, network: LanguageNetwork) -> None:
        request = model_of(network).request(PromptIds((0,) * WARM_UP_TOKENS), (0,))
        tokens, length = network.tokens, request.first_position
        tokens.reach(length + 1)
        cache = tokens.cache(length + 1)
        tokens.transformer(request.embedded, cache, request.positions)
        embedded = tokens.embed(torch.zeros(1, 1, dtype=torch.long))
        tokens.logits(tokens.transformer(embedded, cache, request.positions[-1:] + 1))
        voice = torch.zeros(1, 1, dtype=torch.long), torch.zeros(1, 2, self.flow.config.bands)
        prompt = AcousticPrompt(*voice, torch.ones(1, self.flow.config.speaker_width))
        decoder = CosyDecoder(self._mel, self.vocoder, prompt)
        decoder.push([0] * WARM_UP_TOKENS)
        decoder.finish()
        devices.synchronise(tokens.device)

    def ready_voice(self, voice: Voice, observer: Observer) -> None:
        observer.status("Listening to the recording …")
        self._prompts(Path(voice.audio), observer.check)

    def prepare(
        self, text: str, voice: Voice, options: Values, check: Check, seed: int | None = None
    ) -> tuple[CosyPrompt, Passages[TokenPassage]]:
        heard = self._prompts(Path(voice.audio), check)
        mode, instruction = str(options["mode"]), str(options["instruction"])
        return prepare(text, mode, instruction, voice, heard, self.tokenizer, self._edition.prefix)

    def request(self, network: LanguageNetwork, passage: TokenPassage, prompt: CosyPrompt, options: Values) -> Request:
        return model_of(network).request(prompt.ids, passage.ids)

    @property
    def official_ids(self) -> OfficialIds:
        model = model_of(self.own)
        first = len(model.text) + self._names.marks
        stops = tuple(first + stop for stop in model.tokens.stops)
        return OfficialIds(first + model.tokens.rows, first, model.codes, stops)

    def official_prompt(self, passage: TokenPassage, prompt: CosyPrompt) -> tuple[int, ...]:
        model = model_of(self.own)
        return self._names.row((*prompt.ids.text, *passage.ids), prompt.ids.speech, model.codes).ids

    def token_sampler(self, passage: TokenPassage, prompt: CosyPrompt, options: Values) -> TokenSampler:
        return RepetitionAware(str(options["repeats"]), float(options["top_p"]), int(options["top_k"]))

    def decoder(self, prompt: CosyPrompt, seed: int, options: Values) -> CosyDecoder:
        return self.planned_decoder(prompt, seed, LanguagePlan.begin(self.info, options), NOBODY)

    def planned_decoder(self, prompt: CosyPrompt, seed: int, plan: LanguagePlan, voice: Voice) -> CosyDecoder:
        options, of_flow = plan.options, self.info.mel_flow
        assert of_flow is not None
        flow = plan.flow or FlowPlan.begin(self.info.of_flow, of_flow.values(options), seed)
        speed, at_once, acoustic = float(options["speed"]), not options["stream"], prompt.voice.acoustic
        script = self._mel.planned(flow, voice)
        return CosyDecoder(self._mel, self.vocoder, acoustic, seed, speed, at_once, self._edition, script)


def network_of(model: LanguageModel) -> LanguageNetwork:
    return LanguageNetwork(model.tokens.optimised(), {TEXT: model.text, MARKS: model.marks})


def model_of(network: LanguageNetwork) -> LanguageModel:
    """The network as a language model with its layout."""
    return LanguageModel(network.tables[TEXT], network.tables[MARKS], network.tokens)


def load_cosyvoice(
    request: LoadRequest, edition: Edition = COSYVOICE2, language_weights: str = LANGUAGE_MODEL
) -> CosySpeech:
    """Load all parts except the recording encoders, which are loaded with the first new voice. Raises
    :class:`CheckpointError`."""
    chosen, device = request.entry, request.device
    request.require_folder(f"{language_weights} and the others")
    folder = OfficialFolder(request.place, device, request.check, edition, language_weights)
    folder.require_parts()
    encoder, tokenizer = folder.recording_encoder(), folder.tokenizer()
    request.status("Reading flow and vocoder …")
    flow, vocoder = folder.flow(), folder.vocoder()
    request.status(f"Reading the language model of {chosen.title} …")
    model = folder.language_model()
    tokenizer.require_rows(len(model.text), f"the text embedding in {folder.checkpoint}")
    if flow.config.tokens < model.codes:
        raise CheckpointError(
            f"{language_weights} in {folder.root} speaks {model.codes} tokens, but {FLOW} knows {flow.config.tokens}: "
            "they do not belong together. Download the official release again."
        )
    flow_base = fingerprint(folder.place(FLOW), request.check)
    parameters, layers = sum(one.numel() for one in flow.estimator.parameters()), getattr(flow.estimator, "layers", 0)
    assert chosen.mel_flow is not None
    info = request.info(
        mel_flow=replace(chosen.mel_flow, layers=layers, parameters=parameters, fingerprint=flow_base),
        checkpoint=str(folder.checkpoint),
        fingerprint=fingerprint(folder.checkpoint, request.check),
        sample_rate=vocoder.config.sample_rate,
        layers=model.tokens.transformer.config.layers,
        branches=1,
        parameters=model.parameters,
        text_front_end="qwen2",
    )
    prompts = VoicePrompts(encoder, model.codes, flow.config.speaker_width, mel=edition.mel)
    return CosySpeech(info, folder, model, flow, vocoder, tokenizer, prompts, flow_base)
