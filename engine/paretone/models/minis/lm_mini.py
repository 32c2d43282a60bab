"""The bundled language model that speaks: what :class:`paretone.models.families.language.LanguageSpeech` leaves to a
model."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from paretone import device as devices
from paretone.audio.mel import MelFrontEnd
from paretone.errors import CheckpointError
from paretone.front_end.phones import PhoneVocabulary, TimedPhone
from paretone.models.base import DraftWeights, ModelInfo, OfficialIds, StudentWeights, Voice
from paretone.models.f5.front_end import Prompt as ReadPrompt
from paretone.models.f5.front_end import PromptReader
from paretone.models.families.language import LanguageSpeech
from paretone.models.families.language_network import DraftTensors, LanguageNetwork, ReadDraft, ReadStudent, TokenModel
from paretone.models.families.passages import Decoded
from paretone.models.families.token_decoder import TokenDecoder
from paretone.models.families.voices import Remembered
from paretone.models.files.checkpoints import (
    check_shapes,
    fingerprint,
    loaded_strictly,
    opened,
    read_float_weights,
    read_weights,
    require_fractions,
    require_numbers,
)
from paretone.models.files.config_file import ConfigFile
from paretone.models.files.layer_importance import layer_of
from paretone.models.files.trained_weights import find_language_weights, places
from paretone.models.loading import LoadRequest
from paretone.models.minis.natural_decoder import SAMPLE_RATE
from paretone.models.minis.speaking import (
    CONFIG,
    LAYOUT_FILE,
    NATURAL_PHONES,
    NOBODY,
    MiniFolder,
    NaturalCoding,
    NaturalVoice,
    StreamedSpeech,
    Texts,
    natural_coding,
    phones_of_prompt,
)
from paretone.models.networks.causal import CausalConfig, CausalTransformer
from paretone.models.networks.quantised_mel import SpeechTokenizer, read_quantised_mel, token_phones
from paretone.observer import Observer
from paretone.sampling.autoregressive import Request, decode
from paretone.sampling.tokens import Greedy, Nucleus, TokenSampler, Uniforms
from paretone.setting.knobs import Values


@dataclass(frozen=True)
class Layout:
    """The ids of a checkpoint, as its ``layout.json`` lists them."""

    vocabulary: PhoneVocabulary
    """Phones have the ids from 0 on, in this order."""
    end_of_text: int
    first_code: int
    codes: int
    start_of_speech: int
    end_of_speech: int

    @classmethod
    def read(cls, path: Path) -> Layout:
        """Read a ``layout.json``. Raises :class:`CheckpointError`."""
        file = ConfigFile.read(path)
        layout = cls(
            PhoneVocabulary.read(file.text("phones")),
            **{one.name: file.number(one.name, least=0) for one in fields(cls) if one.name != "vocabulary"},
        )
        if layout.first_code < len(layout.vocabulary.phones) or layout.codes < 1:
            raise CheckpointError(f"{path} has ids that overlap; restore the model folder.")
        return layout

    @property
    def ids(self) -> int:
        """Least number of ids."""
        return max(self.end_of_text, self.first_code + self.codes - 1, self.start_of_speech, self.end_of_speech) + 1

    @property
    def rows(self) -> Tensor:
        """Rows of the official tables that the local ids stand for, (codes + 1,): the codes, then the end of speech."""
        return torch.tensor([*range(self.first_code, self.first_code + self.codes), self.end_of_speech])


def positions(text: int, speech: int) -> Tensor:
    """Positions of ``text`` ids of text, including the end of text, then of the beginning of speech and ``speech``
    tokens."""
    return torch.cat([torch.arange(text), torch.arange(speech + 1)])


TOKENIZER = "tokenizer"
EMBEDDING, HEAD, BODY = "model.embed_tokens.weight", "lm_head.weight", "model."
TEXT = "text"
"""The table that prompts are embedded with: the whole one."""


@dataclass(frozen=True)
class LmMiniFolder(MiniFolder):
    """A folder of this layout."""

    def layout(self) -> Layout:
        """Which ids are what."""
        return Layout.read(self.root / LAYOUT_FILE)

    def config(self) -> CausalConfig:
        """Sizes of the transformer."""
        return CausalConfig.read(ConfigFile.read(self.root / CONFIG))

    def network(self, device: torch.device) -> LanguageNetwork:
        """The model's own network, for inference."""
        return self._network(self.weights_path, self.config(), device)

    def parameters(self) -> int:
        """Number of parameters of the language model, whole tables counted."""
        with opened(self.weights_path) as file:
            return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118

    def student(self, student: StudentWeights, device: torch.device) -> LanguageNetwork:
        """A student's network, for inference."""
        return self._network(Path(student.path), replace(self.config(), layers=student.depth), device)

    def draft(self, draft: DraftWeights) -> DraftTensors:
        """Content of a draft's file."""
        layout, head = self.layout(), None
        layers: dict[int, dict[str, Tensor]] = {}
        for name, value in read_weights(Path(draft.path), self.check).items():
            number = layer_of(name)
            if name == HEAD:
                head = self._rows(value, layout, draft.path)
            elif number is not None and name.startswith(prefix := f"{BODY}layers.{number}."):
                layers.setdefault(number, {})[name.removeprefix(prefix)] = value
            else:
                raise CheckpointError(f"{draft.path} holds {name}, which drafts do not have; train it again.")
        return DraftTensors(layers, head)

    def tokenizer(self, device: torch.device) -> SpeechTokenizer:
        """The speech tokenizer."""
        return read_quantised_mel(self.root / TOKENIZER, SpeechTokenizer, device)

    def _network(self, path: Path, config: CausalConfig, device: torch.device) -> LanguageNetwork:
        layout, where = self.layout(), str(path)
        weights = read_float_weights(path, self.check)
        body = {name.removeprefix(BODY): value for name, value in weights.items() if name not in (EMBEDDING, HEAD)}
        require_fractions(weights, where)
        _require_tables(weights, config, where)
        require_numbers({name: weights[name] for name in (EMBEDDING, HEAD)}, where)
        transformer = loaded_strictly(lambda: CausalTransformer(config), body, where)
        embedding, head = (self._rows(weights[name], layout, where) for name in (EMBEDDING, HEAD))
        tokens = TokenModel(transformer.to(device), embedding.to(device), head.to(device), codes=layout.codes)
        return LanguageNetwork(tokens.eval().optimised(), {TEXT: weights[EMBEDDING].to(device)})

    @staticmethod
    def _rows(table: Tensor, layout: Layout, where: str) -> Tensor:
        """The rows of an official table that can be spoken, in float32."""
        if table.dim() != 2 or len(table) < layout.ids:
            raise CheckpointError(f"{where} has a table with {len(table)} rows, but {LAYOUT_FILE} names {layout.ids}.")
        return table[layout.rows].float()


def _require_tables(weights: Mapping[str, Tensor], config: CausalConfig, where: str) -> None:
    ids = len(weights[EMBEDDING]) if EMBEDDING in weights else 0
    tables = {name: tuple(weights[name].shape) for name in (EMBEDDING, HEAD) if name in weights}
    check_shapes({EMBEDDING: (ids, config.hidden), HEAD: (ids, config.hidden)}, tables, where)


@dataclass(frozen=True)
class LmMiniPrompt:
    """A voice made ready."""

    phones: np.ndarray = field(repr=False)
    """(n,) ids, one for every code."""
    codes: tuple[int, ...] = field(repr=False)
    who: NaturalVoice = field(repr=False)
    """Who speaks."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LmMiniPassage:
    """One piece of text."""

    text: str
    phones: np.ndarray = field(repr=False)
    """(n,) ids, one for every speech token that is to come."""
    end: int = 0
    """Sample at which its last sound is over."""

    @property
    def expected(self) -> int:
        """Speech tokens that it takes."""
        return max(len(self.phones), 1)


@dataclass(frozen=True)
class LmMiniPassages:
    """A whole text."""

    passages: tuple[LmMiniPassage, ...]
    notes: tuple[str, ...] = ()


class LmMiniFrontEnd:
    """Makes voices and texts ready, and remembers the last voice."""

    def __init__(
        self,
        coding: NaturalCoding[SpeechTokenizer],
        texts: Texts,
        vocabulary: PhoneVocabulary,
        read_prompt: Callable[[Voice], ReadPrompt],
    ) -> None:
        self._coding, self._texts, self._vocabulary, self._read_prompt = coding, texts, vocabulary, read_prompt
        self._prompts: Remembered[LmMiniPrompt] = Remembered(operator.is_)

    def __call__(
        self, text: str, voice: Voice, options: Values, check: Callable[[], None], seed: int | None = None
    ) -> tuple[LmMiniPrompt, LmMiniPassages]:
        """Raises :class:`paretone.errors.AudioError` for a voice that it cannot speak in, and
        :class:`paretone.errors.TextError`."""
        prompt = self.prompt(voice)
        check()
        pieces, notes = self._texts.spoken(text, float(options["speed"]), by_sentence=False, seed=seed)
        return prompt, LmMiniPassages(
            tuple(LmMiniPassage(piece, self._tokens(phones), self._coding.end_of(phones)) for piece, phones in pieces),
            notes,
        )

    def prompt(self, voice: Voice) -> LmMiniPrompt:
        """``voice`` made ready."""
        read = self._read_prompt(voice)
        return self._prompts.of(read, lambda: self._encoded(read))

    @torch.inference_mode()
    def _encoded(self, read: ReadPrompt) -> LmMiniPrompt:
        coding = self._coding
        phones, notes = phones_of_prompt(read, self._texts)
        frames = coding.frames(read.mel[:, : read.frames])
        who = NaturalVoice.of(frames)
        codes = tuple(coding.codes(frames, who).tolist())
        return LmMiniPrompt(self._tokens(phones, len(frames)), codes, who, notes)

    def _tokens(self, phones: Sequence[TimedPhone], frames: int | None = None) -> np.ndarray:
        """(n,) ids of ``phones`` over a number of frames, by default as many as they fill."""
        frames = self._coding.frames_until(phones) if frames is None else frames
        return token_phones(self._coding.labels(phones, frames, self._vocabulary), self._coding.stride)


GATHERED = 8
"""Tokens that are decoded at once: enough that calling the operators costs little, and 170 to 200 ms of speech."""


class GatheringDecoder(TokenDecoder):
    """Hands tokens on to a stream some at a time."""

    def __init__(self, stream: StreamedSpeech, device: torch.device) -> None:
        """``device`` is that of the stream."""
        self._device, self._stream = device, stream
        self._gathered: list[int] = []
        self._begun = False

    def push(self, tokens: Sequence[int]) -> np.ndarray:
        self._gathered.extend(tokens)
        if len(self._gathered) < GATHERED:
            return np.zeros(0, np.float32)
        return self._stream.push(self._taken())

    def finish(self) -> np.ndarray:
        if not self._gathered and not self._begun:
            return np.zeros(0, np.float32)
        return self._stream.finish(self._taken())

    def whole(self, tokens: Sequence[int]) -> Decoded:
        return self._stream.whole(torch.tensor(list(tokens), dtype=torch.long, device=self._device))

    @property
    def mel(self) -> np.ndarray | None:
        return self._stream.mel

    def _taken(self) -> Tensor:
        """The gathered tokens, (n,)."""
        codes = torch.tensor(self._gathered, dtype=torch.long, device=self._device)
        self._gathered, self._begun = [], True
        return codes


@dataclass(frozen=True)
class LmMiniParts:
    """What a network needs to speak."""

    layout: Layout
    coding: NaturalCoding[SpeechTokenizer]
    front_end: LmMiniFrontEnd


def read_parts(request: LoadRequest, folder: LmMiniFolder) -> LmMiniParts:
    """The parts in ``folder``, which is that of ``request``. Raises :class:`CheckpointError`."""
    layout = folder.layout()
    tokenizer = folder.tokenizer(request.device)
    if tokenizer.config.codes != layout.codes:
        raise CheckpointError(
            f"The speech tokenizer in {folder.root} has {tokenizer.config.codes} codes, but the model speaks "
            f"{layout.codes}: they do not belong together. Restore the model folder."
        )
    coding = natural_coding(request, tokenizer)
    read_prompt = PromptReader(MelFrontEnd(), True, layout.vocabulary.index)
    return LmMiniParts(layout, coding, LmMiniFrontEnd(coding, Texts(), layout.vocabulary, read_prompt))


SHORTEST = 0.5
"""Share of the expected tokens before which speech cannot end."""
SPARE = 2
"""Room after the expected tokens: for a drafted end of speech, and for the token that would follow it."""
WARM_UP_TOKENS = 40
DRAFT_PROMPT_SECONDS = 0.7
"""Seconds at the end of the voice's recording that a draft reads: more than half a second does not raise its
acceptance."""


class LmMiniSpeech(LanguageSpeech):
    """The loaded bundled language model."""

    def __init__(
        self,
        info: ModelInfo,
        network: LanguageNetwork,
        parts: LmMiniParts,
        read_student: ReadStudent,
        read_draft: ReadDraft,
    ) -> None:
        super().__init__(info, network, 1 / parts.coding.token_seconds, read_student, read_draft)
        self._coding, self._front_end, self._layout = parts.coding, parts.front_end, parts.layout

    @torch.inference_mode()
    def _warm_up(self, network: LanguageNetwork) -> None:
        passage = LmMiniPassage("", torch.zeros(WARM_UP_TOKENS, dtype=torch.long).numpy())
        prompt = LmMiniPrompt(passage.phones, (0,) * WARM_UP_TOKENS, NOBODY)
        request = self._request(network, passage, prompt, Values())
        decoder = self._decoder(prompt, 0, Values())
        for cycle in decode(network.tokens, request, Nucleus(top_k=25), Uniforms(0)):
            decoder.push(cycle.tokens)
        decoder.finish()
        devices.synchronise(self._device)

    def copied(self, samples: np.ndarray, voice: Voice) -> np.ndarray:
        """Copy of speech (n,) of ``voice`` through the tokenizer, float32 at the model's rate."""
        return self._coding.copied(samples, self._front_end.prompt(voice).who)

    def _prepare(
        self, text: str, voice: Voice, options: Values, check: Callable[[], None], seed: int | None = None
    ) -> tuple[LmMiniPrompt, LmMiniPassages]:
        return self._front_end(text, voice, options, check, seed)

    def _ready_voice(self, voice: Voice, observer: Observer) -> None:
        self._front_end.prompt(voice)

    def _request(
        self, network: LanguageNetwork, passage: LmMiniPassage, prompt: LmMiniPrompt, options: Values
    ) -> Request:
        table, text = network.tables[TEXT], len(prompt.phones) + len(passage.phones) + 1
        ids = torch.tensor([self._official_prompt(passage, prompt)], device=table.device)
        return Request(
            torch.nn.functional.embedding(ids, table),
            positions(text, len(prompt.codes)).to(table.device),
            first_position=len(prompt.codes) + 1,
            minimum=round(SHORTEST * passage.expected),
            maximum=passage.expected + SPARE,
            shared=len(prompt.phones),
            # Every token has its phone: after the last one there is nothing left to say.
            length=passage.expected,
        )

    @property
    def official_ids(self) -> OfficialIds:
        layout = self._layout
        size = len(self.own.tables[TEXT])
        return OfficialIds(size, layout.first_code, layout.codes, (layout.end_of_speech,))

    def _official_prompt(self, passage: LmMiniPassage, prompt: LmMiniPrompt) -> tuple[int, ...]:
        layout = self._layout
        text = (*prompt.phones.tolist(), *passage.phones.tolist(), layout.end_of_text)
        return (*text, layout.start_of_speech, *(code + layout.first_code for code in prompt.codes))

    def _draft_prompt(self, prompt: LmMiniPrompt) -> LmMiniPrompt:
        tokens = round(DRAFT_PROMPT_SECONDS * self._token_rate)
        return replace(prompt, phones=prompt.phones[-tokens:], codes=prompt.codes[-tokens:])

    def _ends(self, passages: Sequence[LmMiniPassage]) -> Sequence[int]:
        return [one.end for one in passages]

    def _token_sampler(self, passage: LmMiniPassage, prompt: LmMiniPrompt, options: Values) -> TokenSampler:
        temperature, top_k = float(options["temperature"]), int(options["top_k"])
        penalty = float(options["repetition_penalty"])
        if temperature == 0:
            if penalty == 1:
                return Greedy()
            temperature, top_k = 1.0, 1
        return Nucleus(temperature, top_k, float(options["top_p"]), penalty, prompt.codes)

    def _decoder(self, prompt: LmMiniPrompt, seed: int, options: Values) -> GatheringDecoder:
        return GatheringDecoder(self._coding.stream(prompt.who), self._coding.device)


def load_lm_mini(request: LoadRequest) -> LmMiniSpeech:
    """Load all parts. Raises :class:`CheckpointError`."""
    chosen, device = request.entry, request.device
    request.require_folder(f"{chosen.title} is a folder with a speech tokenizer in it; choose the folder.")
    folder = LmMiniFolder(request.place, request.check)
    network, parts = folder.network(device), read_parts(request, folder)
    digest = fingerprint(folder.weights_path, request.check)
    info = request.info(
        checkpoint=str(folder.weights_path),
        fingerprint=digest,
        sample_rate=SAMPLE_RATE,
        layers=network.tokens.transformer.config.layers,
        branches=1,
        parameters=folder.parameters(),
        text_front_end=NATURAL_PHONES,
    )
    info = find_language_weights(places(chosen.id, request.place), digest, request.check).on(info)
    return LmMiniSpeech(info, network, parts, lambda student: folder.student(student, device), folder.draft)
