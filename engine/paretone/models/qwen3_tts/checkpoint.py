"""The folder of an official release of Qwen3-TTS, part by part.

====================================  =================================================================
``config.json``, ``model.safetensors``  talker, code predictor and, of a Base release, the speaker encoder
``vocab.json``, ``merges.txt``,         the text tokenizer
``tokenizer_config.json``
``speech_tokenizer``                    codes to speech, and recordings to codes
====================================  =================================================================

Sizes are read from the descriptions and held against the weights, which are read strictly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor

from paretone.errors import CheckpointError
from paretone.models.base import StudentWeights
from paretone.models.declaration import Model
from paretone.models.families.language_network import HuggingFaceNames, Parts
from paretone.models.files.byte_pairs import MERGES, VOCABULARY, byte_pairs
from paretone.models.files.checkpoints import (
    TOKENIZER,
    WEIGHTS,
    Shards,
    in_float32,
    loaded_strictly,
    read_float_weights,
    read_tokenizer,
    require_fractions,
)
from paretone.models.files.config_file import ConfigFile, entries_of, weight_files
from paretone.models.qwen3_tts.config import CUSTOM_VOICE, INSTALL, TITLE
from paretone.models.qwen3_tts.model import CODEC, MODEL_TYPE, MODELS, kind_and_size, kind_of
from paretone.models.qwen3_tts.prompts import CHAT, CHAT_OF_INSTRUCTION, CHAT_OF_TRANSCRIPT, FOOTER, HEADER, Marks
from paretone.models.qwen3_tts.speaker_encoder import SpeakerConfig, SpeakerEncoder
from paretone.models.qwen3_tts.speech_tokenizer import (
    CodecDecoder,
    CodecDecoderConfig,
    CodecEncoder,
    CodecEncoderConfig,
)
from paretone.models.qwen3_tts.talker import Talker, TalkerConfig
from paretone.observer import Check
from paretone.reading import shown

if TYPE_CHECKING:
    from tokenizers import Tokenizer


CONFIG, TOKENIZER_CONFIG = "config.json", "tokenizer_config.json"
TALKER, SPEAKER, DECODER, ENCODER = "talker.", "speaker_encoder.", "decoder.", "encoder."
TEXTS = "model.text_embedding.weight"
TOKENIZER_TYPE = f"{MODEL_TYPE}_tokenizer_12hz"


AnyPart = TypeVar("AnyPart", CodecDecoder, CodecEncoder)


@dataclass(frozen=True)
class TalkerNames(HuggingFaceNames):
    """Names of the talker's layers and head, which a student has; embeddings and predictor are the whole model's."""

    layers: str = f"{TALKER}model.layers."
    head: str = f"{TALKER}codec_head.weight"
    embedding: str = f"{TALKER}model.codec_embedding.weight"
    body: str = f"{TALKER}model."

    def tensors(self, parts: Parts) -> dict[str, Tensor]:
        return {name: value for name, value in super().tensors(parts).items() if name != self.embedding}


class TextTokenizer:
    """Texts as the talker reads them. Marks in a text, such as ``<|im_end|>``, are read as its letters."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._frames = {
            frame: [tokenizer.encode(part, add_special_tokens=False).ids for part in frame]
            for frame in (CHAT, CHAT_OF_TRANSCRIPT, CHAT_OF_INSTRUCTION)
        }
        tokenizer.encode_special_tokens = True

    def ids(self, text: str, frame: tuple[str, str] = CHAT) -> tuple[int, ...]:
        """``text`` on one line in a ``frame`` of :mod:`paretone.models.qwen3_tts.prompts`."""
        before, after = self._frames[frame]
        said = self._tokenizer.encode(" ".join(text.split()), add_special_tokens=False).ids
        return (*before, *said, *after)


@dataclass(frozen=True)
class OfficialFolder:
    """A release, with device and precision of the talker. Reading raises :class:`CheckpointError`, and calls ``check``,
    which may cancel."""

    root: Path
    config: ConfigFile
    codec: ConfigFile
    marks: Marks
    device: torch.device
    dtype: torch.dtype
    check: Check

    @classmethod
    def read(
        cls,
        root: Path,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        check: Check = lambda: None,
    ) -> OfficialFolder:
        """Read everything except the weights."""
        if str(entries_of(root / CONFIG).get("model_type")).startswith(f"{MODEL_TYPE}_tokenizer"):
            raise CheckpointError(f"{root} is a speech tokenizer, a part of {TITLE}: choose the folder of a release.")
        texts = () if (root / TOKENIZER).is_file() else (TOKENIZER_CONFIG, VOCABULARY, MERGES)
        names = (CONFIG, *texts, f"{CODEC}/{CONFIG}")
        missing = [name for name in names if not (root / name).is_file()]
        missing += [f"{part}{WEIGHTS}" for part in ("", f"{CODEC}/") if not weight_files(root / part)]
        if missing:
            raise CheckpointError(
                f"{root} is not a complete release of {TITLE}: it lacks {', '.join(missing)}; download it again."
            )
        config, codec = (ConfigFile.read(root / name) for name in (CONFIG, f"{CODEC}/{CONFIG}"))
        config.require("model_type", MODEL_TYPE)
        config.require("tokenizer_type", TOKENIZER_TYPE)
        codec.require("model_type", TOKENIZER_TYPE)
        return cls(root, config, codec, Marks.read(config), torch.device(device), dtype, check)

    @property
    def kind(self) -> str:
        """``base``, ``custom_voice`` or ``voice_design``."""
        return self.config.text("tts_model_type")

    def require(self, chosen: Model) -> None:
        """Raise :class:`CheckpointError` unless this is the release that ``chosen`` declares, or a fine-tune of it."""
        found = kind_of(self.root)
        if found != kind_and_size(chosen):
            other = next((one.title for one in MODELS if kind_and_size(one) == found), "")
            told = f"says {other}; load that" if other else f"says {' '.join(found)}, no release; choose another folder"
            raise CheckpointError(f"{self.root} is not {chosen.title}: its {CONFIG} {told}.")
        if self.kind == CUSTOM_VOICE and not self.marks.speakers:
            raise CheckpointError(f"{self.root / CONFIG} names no speaker; its talker_config needs spk_id.")

    @property
    def shards(self) -> Shards:
        return Shards.find(self.root)

    @property
    def codec_shards(self) -> Shards:
        return Shards.find(self.root / CODEC)

    def tokenizer(self) -> TextTokenizer:
        """The tokenizer, whose ids must be those that ``config.json`` names; else that of ``tokenizer.json``."""
        if not (self.root / VOCABULARY).is_file():
            return self._checked(read_tokenizer(self.root, TITLE, INSTALL, ("<|im_start|>", "<|im_end|>")))
        file = ConfigFile.read(self.root / TOKENIZER_CONFIG)
        added = file.part("added_tokens_decoder", needed=True)
        by_id = {number: added.part(number).text("content") for number in added.entries}
        ordered = sorted((one for one in by_id if one.isdecimal()), key=int)
        tokenizer = byte_pairs(self.root, TITLE, INSTALL, [by_id[one] for one in ordered])
        wrong = [by_id[one] for one in ordered if tokenizer.token_to_id(by_id[one]) != int(one)]
        if wrong or len(ordered) < len(by_id):
            raise CheckpointError(
                f"{self.root / VOCABULARY} does not belong to {file.where}: {shown(wrong[0] if wrong else '?')} has "
                "another id. Download both again."
            )
        return self._checked(tokenizer)

    def _checked(self, tokenizer: Tokenizer) -> TextTokenizer:
        made, rows, size = TextTokenizer(tokenizer), self.talker_config.text_rows, tokenizer.get_vocab_size()
        if size > rows or len(made.ids("")) != HEADER + FOOTER:
            raise CheckpointError(
                f"The tokenizer in {self.root} has {size} tokens, but the text embedding {rows} rows, or it lacks "
                "the marks of a chat: they do not belong together. Download the release again."
            )
        return made

    @property
    def talker_config(self) -> TalkerConfig:
        return TalkerConfig.read(self.config.part("talker_config", needed=True))

    def talker(self) -> Talker:
        """Talker and predictor as trained, on the device."""
        where = self.shards.where
        weights = self._weights(self.shards, TALKER, SPEAKER)  # Some trainings leave it there.
        require_fractions(weights, where)
        for name in list(weights):  # One by one, so that not all are in memory twice.
            self.check()
            # A prompt needs few rows of texts.
            dtype = weights[name].dtype if name == TEXTS else self.dtype
            weights[name] = weights[name].to(self.device, dtype)
        config = self.talker_config
        return loaded_strictly(lambda: Talker(config), weights, where, assign=True)

    def student(self, student: StudentWeights) -> Talker:
        """The layers and the head in a student's file; it has no other parts."""
        config, weights = self.talker_config, read_float_weights(Path(student.path), self.check)

        def fewer() -> Talker:
            made = Talker(replace(config, transformer=replace(config.transformer, layers=student.depth)))
            del made.text_projection, made.code_predictor, made.model.text_embedding, made.model.codec_embedding
            return made

        named = {name.removeprefix(TALKER): value.to(self.device, self.dtype) for name, value in weights.items()}
        return loaded_strictly(fewer, named, student.path, assign=True)

    def speaker_encoder(self) -> SpeakerEncoder:
        """Of a Base release."""
        weights = in_float32(self._weights(self.shards, SPEAKER, TALKER))
        config = SpeakerConfig.read(self.config.part("speaker_encoder_config"))
        return loaded_strictly(lambda: SpeakerEncoder(config), weights, self.shards.where).to(self.device)

    def decoder(self) -> CodecDecoder:
        config = CodecDecoderConfig.read(self.codec.part("decoder_config", needed=True))
        return self._codec_part(lambda: CodecDecoder(config), DECODER, ENCODER)

    def encoder(self) -> CodecEncoder:
        config, groups = CodecEncoderConfig.read(self.codec), self.talker_config.groups
        if config.kept != groups:
            raise CheckpointError(
                f"{self.codec.where} encodes recordings in {config.kept} codes a frame, but the model reads {groups}; "
                "they do not belong together. Download the release again."
            )
        return self._codec_part(lambda: CodecEncoder(config), ENCODER, DECODER)

    def _codec_part(self, make: Callable[[], AnyPart], prefix: str, other: str) -> AnyPart:
        """A part of the speech tokenizer, always in float32."""
        weights = in_float32(self._weights(self.codec_shards, prefix, other))
        return loaded_strictly(make, weights, self.codec_shards.where).to(self.device)

    def _weights(self, shards: Shards, prefix: str, other: str) -> dict[str, Tensor]:
        """The weights under ``prefix``, by names without it; only those under ``other`` may be there, too."""
        weights, others = shards.read(lambda name: name.startswith(prefix), self.check)
        strange = next((name for name in others if not name.startswith(other)), None)
        if strange is not None or not weights:
            held = f"lacks '{prefix}…'" if strange is None else f"holds {shown(strange)}"
            raise CheckpointError(
                f"{shards.where} is not {TITLE} of the kind that {self.root / CONFIG} names: it {held}."
            )
        return {name.removeprefix(prefix): value for name, value in weights.items()}
