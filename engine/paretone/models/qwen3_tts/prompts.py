"""What Qwen3-TTS's talker reads before the first frame, in every mode, and the text that comes with each frame.

Every position is the sum of a text and a code embedding: the header of the chat, then language, speaker and marks of
speech, then the text; to clone with a transcript, also the recording's frames. *Streamed* text comes one token with
each frame; otherwise all of it precedes speech. Official: ``generate`` of ``core/models/modeling_qwen3_tts.py``,
``qwen-tts`` 0.1.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from paretone.errors import SettingError, TextError
from paretone.models.files.config_file import ConfigFile
from paretone.models.qwen3_tts.talker import FramePrompt, Tables
from paretone.wording import listed

HEADER, FOOTER, TRANSCRIPT_END = 3, 5, 2
"""Ids of the chat before a text, after it, and after a transcript."""
AUTO, CHINESE = "auto", "chinese"
CHAT = "<|im_start|>assistant\n", "<|im_end|>\n<|im_start|>assistant\n"
"""What the tokenizer reads before and after a text."""
CHAT_OF_TRANSCRIPT = "<|im_start|>assistant\n", "<|im_end|>\n"
CHAT_OF_INSTRUCTION = "<|im_start|>user\n", "<|im_end|>\n"


@dataclass(frozen=True)
class Marks:
    """Ids of marks, languages and speakers in a release's ``config.json``."""

    text_padding: int
    text_start: int
    text_end: int
    padding: int
    start: int
    think: int
    no_think: int
    think_start: int
    think_end: int
    languages: Mapping[str, int]
    speakers: Mapping[str, int]
    dialects: Mapping[str, str]
    """Dialect of the speakers that have one."""

    @classmethod
    def read(cls, config: ConfigFile | Mapping) -> Marks:
        """Raises :class:`paretone.errors.CheckpointError`."""
        file = ConfigFile.of(config, "The config.json of Qwen3-TTS")
        codes = file.part("talker_config", needed=True)

        def ids(name: str) -> dict[str, int]:
            part = codes.part(name)
            # Some copies hold the ids of speakers as lists.
            plain = {key: one[0] if isinstance(one, list) and one else one for key, one in part.entries.items()}
            return {key.lower(): ConfigFile(plain, part.where).number(key, least=0, most=last) for key in plain}

        def mark(name: str) -> int:
            return codes.number(f"codec_{name}_id", least=0, most=last)

        last = codes.number("vocab_size") - 1

        dialects = codes.part("spk_is_dialect").entries
        return cls(
            text_padding=file.number("tts_pad_token_id", least=0),
            text_start=file.number("tts_bos_token_id", least=0),
            text_end=file.number("tts_eos_token_id", least=0),
            padding=mark("pad"),
            start=mark("bos"),
            think=mark("think"),
            no_think=mark("nothink"),
            think_start=mark("think_bos"),
            think_end=mark("think_eos"),
            languages=ids("codec_language_id"),
            speakers=ids("spk_id"),
            dialects={name.lower(): value.lower() for name, value in dialects.items() if isinstance(value, str)},
        )

    def language(self, name: str, speaker: str) -> int | None:
        """Id of a language; a speaker's dialect replaces Chinese. ``None`` lets the model choose. Raises
        :class:`SettingError` for unknown ones."""
        name = name.lower()
        dialect = self.dialects.get(speaker.lower())
        if dialect and name in (AUTO, CHINESE):
            name = dialect
        if name == AUTO:
            return None
        if name not in self.languages:
            raise SettingError(f"Qwen3-TTS knows no language {name!r}; it knows {listed(sorted(self.languages))}.")
        return self.languages[name]

    def speaker(self, name: str) -> int:
        """Id of a named speaker. Raises :class:`SettingError` for unknown ones."""
        if name.lower() not in self.speakers:
            raise SettingError(f"This release has no speaker {name!r}; it has {listed(sorted(self.speakers))}.")
        return self.speakers[name.lower()]


@dataclass(frozen=True)
class VoiceOfPrompt:
    """A named speaker, or an embedding, alone or with frames and transcript; empty if an instruction describes the
    voice."""

    speaker: str = ""
    embedding: Tensor | None = None
    """(hidden,)."""
    frames: Tensor | None = None
    """Codes (groups, n) of a recording that is continued."""
    transcript: Sequence[int] = ()
    """Ids within :data:`CHAT_OF_TRANSCRIPT`."""


@torch.inference_mode()
def prompt_of(
    tables: Tables,
    marks: Marks,
    text: Sequence[int],
    voice: VoiceOfPrompt,
    language: str = AUTO,
    instruction: Sequence[int] = (),
    streamed: bool = False,
) -> FramePrompt:
    """Prompt for ids within :data:`CHAT`, ``instruction`` within :data:`CHAT_OF_INSTRUCTION`. Raises
    :class:`TextError` if there is no text, and :class:`SettingError` for an unknown speaker or language."""
    said, coded = tables.text, tables.code
    words = text[HEADER:-FOOTER]
    if not words:
        raise TextError("There is no text to speak; type a sentence.")
    padding = said([marks.text_padding])
    chosen = marks.language(language, voice.speaker)
    thoughts = [marks.no_think] if chosen is None else [marks.think]
    thoughts += [marks.think_start, *([] if chosen is None else [chosen]), marks.think_end]
    who = coded([marks.speaker(voice.speaker)]) if voice.speaker else None
    who = voice.embedding[None].to(padding.dtype) if voice.embedding is not None else who
    about = torch.cat([coded(thoughts), *([] if who is None else [who]), coded([marks.padding])])
    beside = torch.cat([padding.expand(len(about) - 1, -1), said([marks.text_start])])
    beginning = [*([said(instruction)] if instruction else []), said(text[:HEADER]), about + beside]
    start, before = coded([marks.start]), sum(map(len, beginning))
    if voice.frames is not None:
        heard, known = torch.cat([start, tables.frames(voice.frames)]), voice.transcript[HEADER:-TRANSCRIPT_END]
        # Apart, so that the recording's part is the same for all texts.
        line = torch.cat([said(known), said([*words, marks.text_end])])
        if streamed:
            together = line[: len(heard)]
            together = torch.cat([together, padding.expand(len(heard) - len(together), -1)])
            trailing = line[len(heard) :]
            embedded, shared = torch.cat([*beginning, heard + together]), before + min(len(known), len(heard))
            return FramePrompt(embedded, trailing if len(trailing) else padding, padding[0], shared)
        embedded = torch.cat([*beginning, line + coded([marks.padding]), heard + padding])
        return FramePrompt(embedded, padding, padding[0], before + len(known))
    if streamed:
        embedded = torch.cat([*beginning, said(words[:1]) + start])
        return FramePrompt(embedded, said([*words[1:], marks.text_end]), padding[0], before)
    line = said([*words, marks.text_end]) + coded([marks.padding])
    return FramePrompt(torch.cat([*beginning, line, padding + start]), padding, padding[0], before)
