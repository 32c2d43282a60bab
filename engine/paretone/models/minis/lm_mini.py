"""The bundled language model: implementation of :class:`paretone.models.families.language.LanguageSpeech`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from paretone import device as devices
from paretone.errors import CheckpointError
from paretone.front_end.phones import PhoneVocabulary
from paretone.front_end.pronunciations import HowToRead
from paretone.models.base import DraftWeights, ModelInfo, OfficialIds, StudentWeights, Voice
from paretone.models.families.language import LanguageSpeech
from paretone.models.families.language_network import DraftTensors, LanguageNetwork, ReadDraft, ReadStudent, TokenModel
from paretone.models.families.passages import Decoded, Passages, TokenDecoder
from paretone.models.files.checkpoints import (
    check_shapes,
    loaded_strictly,
    opened,
    read_float_weights,
    require_fractions,
    require_numbers,
)
from paretone.models.files.config_file import ConfigFile
from paretone.models.loading import LoadRequest
from paretone.models.minis import speaking
from paretone.models.minis.speaking import LAYOUT_FILE, MiniPassage, MiniPrompt, NaturalCoding
from paretone.models.networks.causal import CausalConfig, CausalTransformer
from paretone.models.networks.quantised_mel import SpeechTokenizer, read_quantised_mel, token_phones
from paretone.observer import Check
from paretone.sampling.autoregressive import Request, decode
from paretone.sampling.tokens import Greedy, Nucleus, TokenSampler, Uniforms
from paretone.setting.knobs import Values


@dataclass(frozen=True)
class Layout:
    vocabulary: PhoneVocabulary
    """Phones have ids from 0 in this order."""
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
        return max(self.end_of_text, self.first_code + self.codes - 1, self.start_of_speech, self.end_of_speech) + 1

    @property
    def rows(self) -> Tensor:
        """Rows of the official tables for the local ids, (codes + 1,): the codes, then the end of speech."""
        return torch.tensor([*range(self.first_code, self.first_code + self.codes), self.end_of_speech])


def positions(text: int, speech: int) -> Tensor:
    """Positions of ``text`` text ids, including the end of text, then of the start of speech and ``speech`` tokens."""
    return torch.cat([torch.arange(text), torch.arange(speech + 1)])


TOKENIZER = "tokenizer"
EMBEDDING, HEAD, BODY = "model.embed_tokens.weight", "lm_head.weight", "model."
TEXT = "text"
"""Name of the complete table that embeds prompts."""


@dataclass(frozen=True)
class LmMiniFolder(speaking.MiniFolder):
    def layout(self) -> Layout:
        return Layout.read(self.root / LAYOUT_FILE)

    def config(self) -> CausalConfig:
        return CausalConfig.read(ConfigFile.read(self.root / speaking.CONFIG))

    def network(self, device: torch.device) -> LanguageNetwork:
        return self._network(self.weights_path, self.config(), device)

    def parameters(self) -> int:
        """Number of parameters of the language model, including complete tables."""
        with opened(self.weights_path) as file:
            return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118

    def student(self, student: StudentWeights, device: torch.device) -> LanguageNetwork:
        return self._network(Path(student.path), replace(self.config(), layers=student.depth), device)

    def draft(self, draft: DraftWeights) -> DraftTensors:
        spoken = partial(self._rows, layout=self.layout(), where=draft.path)
        return DraftTensors.read(draft, f"{BODY}layers.", HEAD, spoken, self.check)

    def tokenizer(self, device: torch.device) -> SpeechTokenizer:
        return read_quantised_mel(self.root / TOKENIZER, SpeechTokenizer, device)

    def _network(self, path: Path, config: CausalConfig, device: torch.device) -> LanguageNetwork:
        layout, where = self.layout(), str(path)
        weights = read_float_weights(path, self.check)
        body = {name.removeprefix(BODY): value for name, value in weights.items() if name not in (EMBEDDING, HEAD)}
        require_fractions(weights, where)
        ids = len(weights[EMBEDDING]) if EMBEDDING in weights else 0
        tables = {name: tuple(weights[name].shape) for name in (EMBEDDING, HEAD) if name in weights}
        check_shapes({EMBEDDING: (ids, config.hidden), HEAD: (ids, config.hidden)}, tables, where)
        require_numbers({name: weights[name] for name in (EMBEDDING, HEAD)}, where)
        transformer = loaded_strictly(lambda: CausalTransformer(config), body, where)
        embedding, head = (self._rows(weights[name], layout, where) for name in (EMBEDDING, HEAD))
        tokens = TokenModel(transformer.to(device), embedding.to(device), head.to(device), codes=layout.codes)
        return LanguageNetwork(tokens.eval().optimised(), {TEXT: weights[EMBEDDING].to(device)})

    @staticmethod
    def _rows(table: Tensor, layout: Layout, where: str) -> Tensor:
        """The rows of an official table for the local ids, in float32."""
        if table.dim() != 2 or len(table) < layout.ids:
            raise CheckpointError(f"{where} has a table with {len(table)} rows, but {LAYOUT_FILE} names {layout.ids}.")
        return table[layout.rows].float()


class LmMiniFrontEnd(speaking.MiniFrontEnd[SpeechTokenizer]):
    """Phones are (n,) ids on the CPU, codes a tuple."""

    def _ids(self, by_frame: np.ndarray) -> np.ndarray:
        return token_phones(by_frame, self._coding.stride)

    def _codes(self, codes: Tensor) -> tuple[int, ...]:
        return tuple(codes.tolist())


FIRST = 24
"""Tokens decoded first: a sound depends on up to 22 tokens after it, so fewer give none."""
GATHERED = 8
"""Tokens decoded at once later: enough that operator calls cost little; 170 to 200 ms of speech."""


class GatheringDecoder(TokenDecoder):
    def __init__(self, stream: speaking.StreamedSpeech, device: torch.device) -> None:
        self._device, self._stream = device, stream
        self._gathered: list[int] = []
        self._least = FIRST

    def push(self, tokens: Sequence[int]) -> np.ndarray:
        self._gathered.extend(tokens)
        if len(self._gathered) < self._least:
            return np.zeros(0, np.float32)
        # Later groups may be longer: what came before plays meanwhile.
        self._least = self.patience * GATHERED
        return self._stream.push(self._taken())

    def finish(self) -> np.ndarray:
        return self._stream.push(self._taken(), last=True)

    def whole(self, tokens: Sequence[int]) -> Decoded:
        return self._stream.whole(torch.tensor(list(tokens), dtype=torch.long, device=self._device))

    @property
    def mel(self) -> np.ndarray | None:
        return self._stream.mel

    def _taken(self) -> Tensor:
        codes = torch.tensor(self._gathered, dtype=torch.long, device=self._device)
        self._gathered = []
        return codes


@dataclass(frozen=True)
class LmMiniParts:
    layout: Layout
    coding: NaturalCoding[SpeechTokenizer]
    front_end: LmMiniFrontEnd


def read_parts(request: LoadRequest, folder: LmMiniFolder) -> LmMiniParts:
    """Read the parts in ``folder``, the folder of ``request``. Raises :class:`CheckpointError`."""
    layout = folder.layout()
    tokenizer = folder.tokenizer(request.device)
    if tokenizer.config.codes != layout.codes:
        raise CheckpointError(
            f"The speech tokenizer in {folder.root} has {tokenizer.config.codes} codes, but the model speaks "
            f"{layout.codes}: they do not belong together. Restore the model folder."
        )
    coding = speaking.natural_coding(request, tokenizer)
    return LmMiniParts(layout, coding, LmMiniFrontEnd(coding, layout.vocabulary))


SHORTEST = 0.5
"""Share of the expected tokens before which speech cannot end."""
SPARE = 2
"""Tokens beyond the expected ones: a drafted end of speech, and the token after it."""
WARM_UP_TOKENS = 40
DRAFT_PROMPT_SECONDS = 0.7
"""Seconds at the end of the voice's recording that a draft reads; more do not raise its acceptance."""


class LmMiniSpeech(speaking.MiniSpeech, LanguageSpeech):
    def __init__(
        self,
        info: ModelInfo,
        network: LanguageNetwork,
        parts: LmMiniParts,
        read_student: ReadStudent,
        read_draft: ReadDraft,
    ) -> None:
        super().__init__(info, network, 1 / parts.coding.token_seconds, read_student, read_draft)
        self.coding, self.front_end, self._layout = parts.coding, parts.front_end, parts.layout

    @torch.inference_mode()
    def first_run(self, network: LanguageNetwork) -> None:
        passage = MiniPassage("", torch.zeros(WARM_UP_TOKENS, dtype=torch.long).numpy())
        prompt = MiniPrompt(passage.phones, (0,) * WARM_UP_TOKENS, speaking.NOBODY)
        request = self.request(network, passage, prompt, Values())
        decoder = self.decoder(prompt, 0, Values())
        for cycle in decode(network.tokens, request, Nucleus(top_k=25), Uniforms(0)):
            decoder.push(cycle.tokens)
        decoder.finish()
        devices.synchronise(self._device)

    def prepare(
        self, text: str, voice: Voice, options: Values, check: Check, seed: int | None = None
    ) -> tuple[MiniPrompt, Passages[MiniPassage]]:
        prompt = self.front_end.prompt(voice)
        check()
        return prompt, self.front_end.passages(text, HowToRead.of(options, seed))

    def request(self, network: LanguageNetwork, passage: MiniPassage, prompt: MiniPrompt, options: Values) -> Request:
        table, text = network.tables[TEXT], len(prompt.phones) + len(passage.phones) + 1
        ids = torch.tensor([self.official_prompt(passage, prompt)], device=table.device)
        return Request(
            torch.nn.functional.embedding(ids, table),
            positions(text, len(prompt.codes)).to(table.device),
            first_position=len(prompt.codes) + 1,
            minimum=round(SHORTEST * passage.expected),
            maximum=passage.expected + SPARE,
            shared=len(prompt.phones),
            # Each token has its phone, so speech ends after the last one.
            length=passage.expected,
        )

    @property
    def official_ids(self) -> OfficialIds:
        layout = self._layout
        return OfficialIds(len(self.own.tables[TEXT]), layout.first_code, layout.codes, (layout.end_of_speech,))

    def official_prompt(self, passage: MiniPassage, prompt: MiniPrompt) -> tuple[int, ...]:
        layout = self._layout
        text = (*prompt.phones.tolist(), *passage.phones.tolist(), layout.end_of_text)
        return (*text, layout.start_of_speech, *(code + layout.first_code for code in prompt.codes))

    def draft_prompt(self, prompt: MiniPrompt) -> MiniPrompt:
        tokens = round(DRAFT_PROMPT_SECONDS * self.token_rate)
        return replace(prompt, phones=prompt.phones[-tokens:], codes=prompt.codes[-tokens:])

    def ends(self, passages: Sequence[MiniPassage]) -> Sequence[int]:
        return [one.end for one in passages]

    def token_sampler(self, passage: MiniPassage, prompt: MiniPrompt, options: Values) -> TokenSampler:
        if options["temperature"] == 0 and options["repetition_penalty"] == 1:
            return Greedy()
        return Nucleus.of(options, prompt.codes)

    def decoder(self, prompt: MiniPrompt, seed: int, options: Values) -> GatheringDecoder:
        return GatheringDecoder(self.coding.stream(prompt.who), self.coding.device)


def load_lm_mini(request: LoadRequest) -> LmMiniSpeech:
    device = request.device
    request.require_folder("config.json, model.safetensors and the folder tokenizer")
    folder = LmMiniFolder(request.place, request.check)
    network, parts = folder.network(device), read_parts(request, folder)
    layers, parameters = network.tokens.transformer.config.layers, folder.parameters()
    info = speaking.mini_info(request, folder.weights_path, layers=layers, branches=1, parameters=parameters)
    return LmMiniSpeech(info, network, parts, lambda student: folder.student(student, device), folder.draft)
