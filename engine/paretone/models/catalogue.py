"""Catalogue of models (the entry-point group ``paretone.models``), voices and sentences. Torch-free."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from paretone.by_name import meant
from paretone.errors import AudioError, SettingError
from paretone.models import admission
from paretone.models.base import Voice
from paretone.models.declaration import Model
from paretone.models.voices import own_voice, shipped_voices
from paretone.paths import resource
from paretone.plug_ins import PlugIns
from paretone.reading import legible, require_regular
from paretone.setting.compatibility import owner_of_voice
from paretone.setting.plan import attempted, described

GROUP = "paretone.models"


@dataclass
class Catalogue(PlugIns):
    models: tuple[Model, ...] = ()
    """In the order of lists."""


@cache
def catalogue() -> Catalogue:
    """The catalogue, built once; ``catalogue.cache_clear()`` rebuilds it."""
    made, found, taken = Catalogue(), [], set[str]()
    for declared, point in made.declared(GROUP, admission.fault):
        for one in declared if isinstance(declared, tuple) else (declared,):
            if name := next((name for name in (one.id, one.title) if name in taken), ""):
                made.leave_out_taken(point, "a model", name, *({one.id} - taken))
                continue
            taken |= {one.id, one.title}
            owner = made.own(point, one.id)
            found.append(_held(made, one, owner) if owner else one)
    made.models = tuple(sorted(found, key=lambda one: (one.place, one.title)))
    return made


def _held(made: Catalogue, one: Model, owner: str) -> Model:
    """``one`` of the plug-in ``owner``, whose functions end no list: a failure is reported, and says nothing."""

    def held(field: str, function: Callable[..., Any], nothing: Any) -> Callable[..., Any]:
        def call(*given: object) -> Any:
            found, error = attempted(function, *given)
            if error is None:
                return found
            made.report(f"{field} of {one.id} failed ({described(error, one.loader)}); mend {owner}.")
            return nothing

        return call

    named = one.voices.named
    voices = replace(
        one.voices,
        named=named and held("voices.named", lambda folder: tuple((f"{a}", f"{b}") for a, b in named(folder)), ()),
        no_latents=held("voices.no_latents", one.voices.no_latents, "This recording has no latents."),
    )
    recognised = held("recognised", lambda folder: float(one.recognised(folder)), 0.0)
    without_effect = held("without_effect", lambda *given: "" + one.without_effect(*given), "")
    return replace(one, voices=voices, recognised=recognised, without_effect=without_effect)


def models() -> tuple[Model, ...]:
    """All models, in the order of lists; the first is the one to start with."""
    return catalogue().models


def plug_in(model: str) -> str:
    """The plug-in with the ``model``, for messages; ``""`` for ours."""
    return catalogue().plug_ins.get(model, "")


def find(model: str) -> Model | None:
    """The model called ``model``, if any: stored ids may belong to another version or plug-in."""
    return next((one for one in models() if one.id == model), None)


def entry(model: str) -> Model:
    """The model called ``model``. Raises :class:`SettingError` with a similar id, or why it was left out."""
    found = find(model)
    if found is None:
        raise catalogue().unknown("model", model, (one.id for one in models()))
    return found


def recognised(folder: Path) -> Model | None:
    """The model whose files seem to be in ``folder``: by a layout of its own, else by the folder's name (the longest id
    in it, since one id may begin another), else by what is likely; ``None`` if no model knows them."""

    def likely(one: Model) -> tuple[bool, int, float, int]:
        sure = one.recognised(folder)
        return sure >= 1, _named(one, folder), sure, -one.place

    best = max(models(), key=likely)
    return best if any(likely(best)[:3]) else None


def id_of(folder: str) -> str:
    """Id of the model in ``folder``, or with the file ``folder``; ``""`` if its layout does not say."""
    place = Path(folder).parent if Path(folder).is_file() else Path(folder)
    found = recognised(place) if folder and "\0" not in folder else None
    return found.id if found and found.recognised(place) >= 0.5 else ""  # Otherwise only its name says so.


def within(folder: Path) -> list[Path]:
    """Folders in ``folder``, as in a clone, a cache or the output of a training, that say which model's they are."""
    inner = (one for pattern in ("*", "*/*") for one in sorted(folder.glob(pattern)) if one.is_dir())
    found = [one for one, _ in zip(inner, range(100), strict=False) if id_of(str(one))]
    return [one for one in found if one.parent not in found]  # A part of a model may say so as well.


def _named(one: Model, folder: Path) -> int:
    """Length of the model's id if it is in the folder's name."""
    spelled, name = (re.sub("[-_]", "", text.lower()) for text in (one.id, folder.resolve().name))
    return len(spelled) if spelled in name else 0


VOICES = "voices"
"""Subfolder of released voices in their model's folder."""


def voices(model: str = "", folder: str = "") -> tuple[Voice, ...]:
    """The voices that come with ``model`` (``""``: the first), whose files lie in ``folder`` if given. Bundled voices
    are recordings with transcripts, usable by nearly every model. Models with voices of their own take no recordings;
    those that need released latents can use only what the user puts into ``voices`` in their folder."""
    chosen = entry(model) if model else models()[0]
    if named := chosen.voices.named:
        return tuple(Voice(one, title, "", "") for one, title in named(Path(folder) if folder else chosen.folder))
    if latents := chosen.voices.latents:
        there = sorted(((Path(folder) if folder else chosen.folder) / VOICES).glob("*.wav"))
        pairs = (path for path in there if path.with_suffix(latents).is_file())
        return tuple(Voice(path.stem, path.stem.replace("_", " "), str(path), "") for path in pairs)
    return shipped_voices()


def voice_problem(audio: Path, model: str, folder: str = "", transcript: str = "") -> str:
    """Why ``model``, with its files in ``folder`` if given, cannot speak in the voice of a recording, or ``""``."""
    chosen = entry(model)
    place = Path(folder) if folder else chosen.folder
    if chosen.bundled and place == chosen.folder:
        from paretone.front_end.speakable import unread_transcript  # Slow to import.

        return unread_transcript(transcript)
    takes = chosen.voices
    if takes.named is not None:
        return f"{chosen.title} takes no recordings: choose one of its named voices."
    encoder = bool(takes.encoder) and (place / takes.encoder).is_file()
    able = not takes.latents or audio.with_suffix(takes.latents).is_file() or encoder
    return "" if able else takes.no_latents(audio)


def voice(name: str = "", model: str = "", folder: str = "") -> Voice:
    """The voice of ``model`` called ``name``, by default the first. Raises :class:`SettingError` for unknown names."""
    known = voices(model, folder)
    for one in known:
        if name in ("", one.id):
            return one
    chosen = entry(model) if model else models()[0]
    if latents := chosen.voices.latents:
        place = (Path(folder) if folder else chosen.folder) / VOICES
        listed = f"known voices: {', '.join(one.id for one in known)}" if known else "there is none yet"
        raise SettingError(
            f"{chosen.title} has no voice{f' named {name!r}' if name else ''} ({listed}): its public release "
            "can only speak in released voices. Put a recording and its latents (name.wav and "
            f"name{latents}) into {place}, or choose the recording itself, with its latents in the same folder."
        )
    if chosen.voices.named and not known:
        raise SettingError(f"The files of {chosen.title} in {folder or chosen.folder} name no voice; choose others.")
    was = owner_of_voice(name)
    why = f" any more: it was one of the earlier {was}" if was else ""
    raise SettingError(
        f"There is no voice named {name!r}{why}; {meant(name, [one.id for one in known], 'known voices:')}"
        + ("" if chosen.voices.named else " Use a recording of your own together with its transcript.")
    )


def voice_or_recording(name: str, transcript: str = "", model: str = "", folder: str = "") -> Voice:
    """The voice ``name`` of ``model``, or of the recording there with ``transcript``. Raises :class:`PlainError`."""
    recording = Path(name)
    if not name or name in {one.id for one in voices(model, folder)}:
        if transcript:
            raise AudioError("A transcript needs a recording; give its path as the voice.")
        return voice(name, model, folder)
    if not recording.exists() and not recording.suffix:
        return voice(name, model, folder)
    with legible(AudioError, "recording", recording):
        require_regular(recording)
    if problem := voice_problem(recording, model, folder, transcript):
        raise AudioError(problem)
    return own_voice(recording, transcript)


def sentences() -> tuple[str, ...]:
    return _lines("demo.txt")


def harvard_sentences() -> tuple[str, ...]:
    """Sentences for measuring intelligibility; no model here was trained on them."""
    return _lines("harvard.txt")


def unseen_sentences() -> tuple[str, ...]:
    """Everyday sentences as people write them; no model here was trained on them."""
    return _lines("unseen.txt")


def judged_sentences() -> tuple[str, ...]:
    """All test sentences. Training excludes them, and texts that share a run of words with one."""
    return (*harvard_sentences(), *unseen_sentences())


def _lines(name: str) -> tuple[str, ...]:
    text = resource("sentences", name).read_text(encoding="utf-8")
    return tuple(line.strip() for line in text.splitlines() if line.strip())
