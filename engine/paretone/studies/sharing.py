"""A study's results as a report has them: with the names of files, without the folders of the machine. Torch-free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath

from paretone.studies.results import Results

_FILES = ("folder", "manifest", "manifest_audio", "sentences", "audio")
"""Fields of a study's file that may name files or folders."""


def shared(results: Results) -> Results:
    """``results`` for others to read. Relative paths stay: who repeats the study has them next to its file."""
    folders = _folders(results)
    return replace(
        results,
        definition=_without_folders(results.definition),
        settings=tuple(replace(one, problem=_cut(one.problem, folders)) for one in results.settings),
        failed=tuple(replace(one, sentence=_cut(one.sentence, folders)) for one in results.failed),
        no_reference=_cut(results.no_reference, folders),
    )


def _without_folders(values: Mapping[str, object]) -> dict[str, object]:
    def cut(name: str, value: object) -> object:
        if isinstance(value, Mapping):
            return _without_folders(value)
        if isinstance(value, list):
            return [_without_folders(one) if isinstance(one, Mapping) else one for one in value]
        return _name(value) if name in _FILES and isinstance(value, str) else value

    return {name: cut(name, value) for name, value in values.items()}


def _name(path: str) -> str:
    kinds = PureWindowsPath, PurePosixPath
    return next((kind(path).name for kind in kinds if kind(path).is_absolute()), path)


def _folders(results: Results) -> list[str]:
    """Folders of this machine that sentences may name, the longest first."""
    found = {results.folder.absolute(), Path.home(), Path.cwd()}
    if results.file:
        found.add(Path(results.file).absolute().parent)
    found |= {Path(path).absolute().parent for path in _paths(results.definition)}
    return sorted((str(one) for one in found if one != one.parent), key=len, reverse=True)


def _paths(values: Mapping[str, object]) -> list[str]:
    found = [value for name, value in values.items() if name in _FILES and isinstance(value, str) and value]
    for value in values.values():
        for one in value if isinstance(value, list) else [value]:
            found += _paths(one) if isinstance(one, Mapping) else []
    return found


def _cut(sentence: str, folders: list[str]) -> str:
    for folder in folders:
        for separator in "/\\":
            sentence = sentence.replace(f"{folder}{separator}", "")
    return sentence
