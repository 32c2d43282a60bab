"""``paretone download``: an official checkpoint and its vocoder, after acceptance of their licence."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from paretone.commands.command import Result
from paretone.commands.terminal import JOB, Session, Terminal
from paretone.errors import Cancelled, PlainError, SettingError
from paretone.models import catalogue
from paretone.models.files.releases import LICENCES, Extent, Release, extent
from paretone.session.commands import DownloadModel
from paretone.session.events import Event, Progress

NAME = "download"
SUMMARY = "Download an official checkpoint and its vocoder, after showing their licences."


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", metavar="MODEL", help=f"one of {', '.join(one.id for one in catalogue.models() if one.release)}"
    )
    parser.add_argument(
        "--folder",
        default="",
        help="folder for the model, instead of the usual one; its vocoder goes into a folder next to it",
    )
    parser.add_argument("--accept-licence", metavar="NAME", default="", help="the licence that you accept")


def run(options: argparse.Namespace, session: Session) -> Result:
    terminal = session.terminal
    entry = catalogue.entry(options.model)
    release = entry.published
    folder = Path(options.folder) if options.folder else entry.folder
    if options.accept_licence != release.licence:
        _ask(release, options, folder, terminal)
    activity = ""

    def hear(event: Event) -> None:
        nonlocal activity
        if isinstance(event, Progress) and event.text != activity:
            activity = event.text
            terminal.status(f"{activity}, {_size(event.total)} in all")
        terminal.hear(event)

    try:
        done = session.carry_out(DownloadModel(JOB, entry.id, str(folder), release.licence), hear)
    except Cancelled:
        raise Cancelled("Cancelled. The downloaded part is kept; run the same command to resume.") from None
    found = sorted({Path(path).resolve() for path in done.files})
    data: dict[str, Any] = {"model": entry.id, "folder": str(folder), "licence": release.licence}
    data |= {"files": [str(path) for path in found], "bytes": sum(path.stat().st_size for path in found)}
    place = "" if folder == entry.folder else f' --folder "{folder}"'
    if folder.name != entry.variant and entry.variant in entry.architectures:
        # Two architectures share their weight names, so the name of another folder does not suffice.
        place += f" --variant {entry.variant}"
    lines = [
        f"{entry.title} is complete: {len(found)} files, {_size(data['bytes'])}.",
        *map(str, found),
        f'Try it: paretone speak --model {entry.id}{place} --text "Good morning." --out morning.wav',
    ]
    if release.advice:
        lines.insert(-1, release.advice.replace("{}", str(folder / catalogue.VOICES)))
    return Result(data, "\n".join(lines))


def _ask(release: Release, options: argparse.Namespace, folder: Path, terminal: Terminal) -> None:
    """Show the terms; return once accepted, otherwise raise :class:`SettingError`."""
    repeat = f'paretone download {options.model} --accept-licence "{release.licence}"'
    if options.folder:
        repeat += f' --folder "{options.folder}"'
    if options.accept_licence:
        raise SettingError(
            f"{options.model} is published under {release.licence}, not {options.accept_licence}; "
            f"to accept that, run: {repeat}"
        )
    terminal.clear()
    known: Extent | None = None
    try:
        known = extent(catalogue.entry(options.model).published, folder, terminal.check)
    except PlainError as error:  # The server does not answer: the licence is shown without the size.
        print(error, file=sys.stderr)
    print(_terms(release, known), file=sys.stderr)
    if not options.json and sys.stdin.isatty() and sys.stderr.isatty():
        print(f"Do you accept {release.licence}? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
        raise SettingError("The licence was not accepted, so nothing was downloaded.")
    raise SettingError(f"If you accept {release.licence}, run: {repeat}")


def _terms(release: Release, known: Extent | None) -> str:
    lines = []
    files = tuple(known.sizes) if known else release.files
    for name in dict.fromkeys((release.licence, *(one.licence for one in files))):
        licence = LICENCES.get(name)
        lines += [f"{name}: {licence.summary}", f"    {licence.link}"] if licence else [f"{name}:"]
        for one in files:
            if one.licence == name:
                size = f", {_size(known.sizes[one])}" if known else ""
                lines.append(f"    https://huggingface.co/{one.repository}: {one.name}{size}")
    if known:
        lines.append(f"To download: {_size(known.missing)} of {_size(known.total)}.")
    return "\n".join(lines)


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.2f} GB"
