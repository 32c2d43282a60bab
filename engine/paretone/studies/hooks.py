"""Hooks of techniques in studies: see :attr:`paretone.techniques.base.Technique.study`. Torch-free.

A technique may name a module with any of these functions, which is imported on first use:

- ``settings(fields, model, options)`` reads its own fields from a study's file (:class:`paretone.fields.Fields`) and
  yields additional settings with their names;
- ``preparer()`` makes the function that prepares the technique's artefact on a worker: called with the loaded model,
  utterances, a setting and an observer, it returns the artefact, and may cache for the next setting;
- ``files(store)`` gives additional files of a report, texts by file name;
- ``finished(study, store)`` is called at the end of a study and returns a :class:`Finding` about the model, or
  ``None``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from paretone.errors import Cancelled, PlainError, SettingError
from paretone.models.base import SpeechModel, Utterance
from paretone.observer import Observer, Passing
from paretone.setting.plan import described, kind_of
from paretone.setting.setting import Artefact, Setting
from paretone.techniques import Technique, resolve, technique
from paretone.techniques.registry import brought, plug_in, registry


@dataclass(frozen=True)
class Finding:
    sentence: str
    """Message to the user."""
    fields: tuple[tuple[str, str], ...] = ()
    """Fields for the command line's JSON, by name."""
    result: Any = None
    """Result as the technique's own job would return it; ``None`` without one."""
    checkpoint: str = ""
    """SHA-256 of its checkpoint."""


def hooks(name: str) -> Iterator[tuple[Technique, Callable[..., Any]]]:
    for one, module in brought("study"):
        found = getattr(module, name, None)
        if found is not None:
            yield one, _held(one, name, found) if plug_in(one.name) else found


_NOTHING: dict[str, tuple[Any, Callable[[Any], bool]]] = {
    "settings": (
        (),
        lambda found: all(
            isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], Setting) and isinstance(one[1], str)
            for one in found
        ),
    ),
    "files": (
        {},
        lambda found: isinstance(found, dict) and all(isinstance(part, str) for one in found.items() for part in one),
    ),
    "finished": (None, lambda found: found is None or isinstance(found, Finding)),
}
"""For functions called in every study: substitute result of a failed plug-in, and validity check of a result."""


def _held(one: Technique, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A plug-in's ``function``, wrapped so that a failure does not stop the study."""
    nothing, fits = _NOTHING[name]

    def held(*given: Any) -> Any:
        try:
            found = function(*given)
            found = list(found) if name == "settings" else found
            if fits(found):
                return found
            reason = f"it gave {kind_of(found)}"
        except (PlainError, Cancelled, KeyboardInterrupt):
            raise
        except BaseException as error:
            reason = described(error, function.__module__ or "")
        registry().report(f"{one.title}: {name} of its studies failed ({reason}); mend {plug_in(one.name)}.")
        return nothing

    return held


def preparer(name: str) -> Callable[..., Any]:
    """Function that prepares artefacts for the technique ``name``. Raises :class:`SettingError`."""
    one = technique(name)
    module = next((module for owner, module in brought("study") if owner is one), None)
    if module is None or not hasattr(module, "preparer"):
        raise SettingError(f"{one.title} has nothing that prepares it for studies; do without it.")
    return module.preparer()


def calibrated(
    name: str,
    model: SpeechModel,
    utterances: Sequence[Utterance],
    setting: Setting,
    observer: Observer,
    preparers: dict[str, Callable[..., Any]] | None = None,
) -> Artefact:
    """Artefact of the technique ``name`` from ``utterances``. ``preparers`` caches preparers for the next setting.
    Raises :class:`PlainError`."""
    resolve(model.info, setting, prepared=False)
    observer.status(f"Calibrating {technique(name).title} …")
    kept = {} if preparers is None else preparers
    if name not in kept:
        kept[name] = preparer(name)
    return kept[name](model, tuple(utterances), setting, Passing(observer, "caution", "progress"))
