"""The lists of sentences that papers evaluate on, as they are published. Torch-free.

* LibriSpeech-PC test-clean, cross-sentence: ``librispeech_pc_test_clean_cross_sentence.lst`` of the F5-TTS repository,
  1127 lines of six fields between tabs: id, seconds and text of the prompt; id, seconds and text of what is to be said.
  The recordings are LibriSpeech's, ``speaker/chapter/id.flac`` in a separate folder.
* Seed-TTS test-en: ``meta.lst`` of four or five fields between bars: id, text and recording of the prompt, what is to
  be said, and maybe a recording of that, which else is ``wavs/id.wav`` next to the list.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from paretone.errors import StudyError
from paretone.models.base import Voice
from paretone.models.voices import own_voice
from paretone.reading import read_text, shown


@dataclass(frozen=True)
class EvaluationRow:
    """One sentence of a list."""

    text: str
    voice: Voice
    """The prompt."""
    recording: str
    """Recording of a person who says the sentence, or ``""`` if there is none."""


def read(path: Path, audio: Path | None = None) -> tuple[EvaluationRow, ...]:
    """The rows of the list at ``path``; ``audio`` is the folder of LibriSpeech's recordings.

    Raises :class:`StudyError` that names the line at fault, or the first recording that is not there.
    """
    try:
        lines = read_text(path).splitlines()
    except OSError as error:
        raise StudyError(f"The list {path} could not be read: {error.strerror or error}; check the path.") from error
    except UnicodeDecodeError as error:
        raise StudyError(f"The list {path} is not UTF-8 text; choose the list as it was published.") from error
    rows = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        parts = line.strip("\n").split("\t")
        if len(parts) == 6:
            rows.append(_librispeech(parts, path, number, audio))
        elif len(parts := line.strip().split("|")) in (4, 5):
            rows.append(_seed_tts(parts, path))
        else:
            raise StudyError(
                f"Line {number} of {path} has neither six fields between tabs (LibriSpeech-PC) nor four or five "
                "between bars (Seed-TTS); choose the list as it was published."
            )
    if not rows:
        raise StudyError(f"The list {path} is empty; choose the list as it was published.")
    for row in rows:
        if not Path(row.voice.audio).is_file():
            raise StudyError(
                f"The recording {row.voice.audio} of the list {path} is missing; check where its audio lies."
            )
    return tuple(rows)


def _librispeech(parts: list[str], path: Path, number: int, audio: Path | None) -> EvaluationRow:
    if audio is None:
        raise StudyError(f"{path} is a list of LibriSpeech; give the folder of test-clean as 'manifest_audio'.")
    prompt, _, transcript, spoken, _, text = parts

    def recording(name: str) -> str:
        pieces = name.split("-")
        if len(pieces) != 3:
            raise StudyError(f"Line {number} of {path}: {shown(name)} is not speaker-chapter-number.")
        return str(audio / pieces[0] / pieces[1] / f"{name}.flac")

    return EvaluationRow(text.strip(), _voice(recording(prompt), transcript), recording(spoken))


def _seed_tts(parts: list[str], path: Path) -> EvaluationRow:
    name, transcript, prompt, text, *rest = parts
    folder = path.parent
    spoken = folder / (rest[0] if rest else f"wavs/{name}.wav")
    return EvaluationRow(
        text.strip(), _voice(str(folder / prompt), transcript), str(spoken) if spoken.is_file() else ""
    )


def _voice(recording: str, transcript: str) -> Voice:
    return own_voice(recording, transcript.strip())
