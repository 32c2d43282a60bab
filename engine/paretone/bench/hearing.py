"""Lets the judges hear as many sentences as there is time for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from paretone.bench.budget import Turns
from paretone.measure.intelligibility import Judge, WordErrors
from paretone.measure.verdicts import VoiceVerdict, Way, verdicts
from paretone.models.base import SpeechModel, Voice
from paretone.models.vocoders import Vocoder


def heard_in_turns(
    sentences: Sequence[str],
    voices: Sequence[Voice],
    vocoder: Vocoder | None,
    model: SpeechModel,
    ways: Sequence[Way],
    turns: Turns,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, list[VoiceVerdict]]:
    """As :func:`paretone.measure.verdicts.verdicts` has it, by title and then by voice, sentence by sentence while
    ``turns`` allow another. The judge knows the words of all sentences, however many are heard."""
    judge = Judge(sentences)
    found: dict[str, dict[str, VoiceVerdict]] = {}
    for at, sentence in enumerate(sentences):
        if not turns.another():
            break
        say(f"sentence {at + 1} of {len(sentences)}: {len(ways)} ways in {len(voices)} voices …")
        for one in verdicts([sentence], voices, vocoder, model, ways, judge=judge):
            of_voice = found.setdefault(one.speech, {})
            of_voice[one.voice] = _joined(of_voice[one.voice], one) if one.voice in of_voice else one
    return {title: list(of_voice.values()) for title, of_voice in found.items()}


def _joined(first: VoiceVerdict, more: VoiceVerdict) -> VoiceVerdict:
    """What was heard in one way and one voice, with another sentence."""
    errors = WordErrors(
        first.errors.edits + more.errors.edits,
        first.errors.words + more.errors.words,
        first.errors.heard + more.errors.heard,
    )
    return replace(
        first,
        errors=errors,
        syntheses=first.syntheses + more.syntheses,
        mels=first.mels + more.mels,
        figures=first.figures + more.figures,
    )
