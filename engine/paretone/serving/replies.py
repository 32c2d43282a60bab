"""Replies of a measured server as recordings, and what the judges say of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paretone import files

if TYPE_CHECKING:
    from paretone.serving.load import Measured

TEXTS = "texts.txt"


def keep(folder: Path, found: Sequence[Measured]) -> dict[str, dict[str, str]]:
    """Write every reply, by its load and number, and the texts in the order of the files' names; returns the text of
    each file, by load."""
    written: dict[str, dict[str, str]] = {}
    for measured in found:
        of_load = written.setdefault(str(measured.level), {})
        for number, one in enumerate(measured.answered, start=1):
            name = f"{str(measured.level).replace('/', ' a ').replace(' ', '-')}-{number:04}.wav"
            files.write_wav(folder / name, one.samples, one.sample_rate)
            of_load[name] = one.text
    every = {name: text for one in written.values() for name, text in one.items()}
    files.write(folder / TEXTS, "".join(f"{every[name]}\n" for name in sorted(every)).encode())
    return written


def judged(
    folder: Path,
    texts: Mapping[str, str],
    reference: Path | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    check: Callable[[], None] = lambda: None,
) -> dict[str, tuple[float, float, float]]:
    """Words, naturalness, variety and the like of the replies of one load in ``folder``, by file with its text; also
    similarity to the voice of ``reference``. Values with the ends of their 95 % intervals, by metric. Raises
    :class:`paretone.errors.PlainError`."""
    from paretone.measure.evaluation.judging import judge_files

    if not texts:
        return {}
    paths = [folder / name for name in texts]
    found = judge_files(paths, list(texts.values()), reference, (), "cpu", progress, check)
    return {name: one.ends for name, one in found.means.items()}
