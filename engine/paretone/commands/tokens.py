"""``paretone tokens``: text and voice as ids for an exported language model, or the audio of its tokens."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from paretone import files
from paretone.audio.recording import write_sound
from paretone.commands import arguments
from paretone.commands.command import Result
from paretone.commands.output import apart, writable, writable_sound
from paretone.commands.terminal import JOB, Session
from paretone.errors import SettingError
from paretone.export.targets import prompts_file
from paretone.fields import is_of
from paretone.models import catalogue
from paretone.reading import legible, parsed_json, read_bytes
from paretone.session.commands import EncodePrompts, HearTokens
from paretone.techniques import options_in_force

NAME = "tokens"
SUMMARY = "Write a text and a voice as ids for an exported language model, or the sound of tokens that it gave."
MOST = 100_000
"""Maximum number of tokens decoded at once: more than half an hour of speech."""


def declare(parser: argparse.ArgumentParser) -> None:
    arguments.add_model(parser, arguments.DEFAULT_LANGUAGE_MODEL)
    parser.add_argument(
        "--tokens",
        metavar="FILE",
        help="JSON file of an export's generate.py, to be heard: its tokens, and the text that they say",
    )
    arguments.add_sampler(parser)
    arguments.add_text(parser)
    parser.add_argument(
        "--out", required=True, metavar="FILE", help=f"prompts.json to write; with --tokens, {arguments.sound_file()}"
    )


def run(options: argparse.Namespace, session: Session) -> Result:
    out = writable(options.out) if options.tokens is None else writable_sound(options.out)
    apart({"--out": out}, {"--tokens": options.tokens, "--text-file": options.text_file, "--voice": options.voice})
    model = arguments.model(options)
    given = None if options.tokens is None else _read(Path(options.tokens))
    if given is None:
        if options.text is None and options.text_file is None:
            raise SettingError("Give --text, --text-file or --tokens: there is nothing to encode or to hear.")
        text = arguments.text(options)
    else:
        text = given[1]
    if given is not None and options.voice is None and not options.transcript:
        shipped = {one.id for one in catalogue.voices(model, options.folder)}
        options.voice = given[2] if given[2] in shipped else None
    voice, setting = arguments.voice(options, model), arguments.setting(options, model)
    arguments.load(options, session, model, options.variant)
    if given is None:
        encoded = session.carry_out(EncodePrompts(JOB, text, voice, setting))
        files.write(out, prompts_file(encoded.ids, encoded.prompts, voice.id, options_in_force(setting)))
        lengths = [len(one.ids) for one in encoded.prompts]
        data: dict[str, Any] = {"out": str(out), "voice": voice.id, "prompts": lengths}
        return Result(data, f"Wrote {len(lengths)} {'prompt' if len(lengths) == 1 else 'prompts'} to {out}.")
    heard = session.carry_out(HearTokens(JOB, given[0], text, voice, setting))
    remarks = write_sound(out, heard.samples, heard.sample_rate)
    seconds = len(heard.samples) / heard.sample_rate
    data = {"out": str(out), "voice": voice.id, "tokens": len(given[0]), "seconds": seconds, "notes": list(remarks)}
    return Result(data, "\n".join([f"Wrote {seconds:.2f} s of speech to {out}.", *remarks]))


def _read(path: Path) -> tuple[tuple[int, ...], str, object]:
    """Tokens in a file, their text, and the voice if named. Raises :class:`SettingError`."""
    with legible(SettingError, "file", path):
        found = read_bytes(path)
    try:
        content = parsed_json(found)
    except ValueError as error:
        raise SettingError(f"{path} cannot be read as JSON ({error}); give the file that generate.py wrote.") from None
    tokens = content.get("tokens") if isinstance(content, dict) else None
    text = content.get("text") if isinstance(content, dict) else None
    if not isinstance(tokens, list) or not isinstance(text, str) or not all(is_of(one, int) for one in tokens):
        raise SettingError(f'{path} should hold "text" and "tokens", a list of whole numbers, as generate.py writes.')
    if not 0 < len(tokens) <= MOST:
        raise SettingError(f"{path} holds {len(tokens)} tokens; 1 to {MOST} can be heard.")
    return tuple(tokens), text, content.get("voice")
