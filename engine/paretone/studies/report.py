"""A study's report: an HTML page, and its tables as CSV and LaTeX. Torch-free."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paretone import files
from paretone.errors import StudyError
from paretone.studies.agreement import Listened
from paretone.studies.hooks import hooks
from paretone.studies.report_curves import curves_sheet
from paretone.studies.report_page import to_html
from paretone.studies.report_tables import takes_csv, to_csv, to_latex
from paretone.studies.results import Results
from paretone.studies.sharing import shared
from paretone.studies.store import Store


def write_report(results: Results, place: Path, listened: Sequence[Listened] = ()) -> tuple[Path, ...]:
    """Write ``report.html``, ``results.csv``, ``takes.csv`` and ``results.tex`` into the folder ``place``; their paths.
    ``curves.svg`` comes with them if settings differ in one knob only.
    Techniques may add files of their own, such as the importance of layers of a study that leaves them out.
    ``listened`` is what listening tests found of settings.

    Raises :class:`StudyError` if nothing has been made yet, or they cannot be written.
    """
    if not any(one.finished for one in results.settings):
        raise StudyError(f"The study in {results.folder} has no finished take yet; run it first.")
    results = shared(results)
    made = {
        "report.html": to_html(results, listened),
        "results.csv": to_csv(results),
        "takes.csv": takes_csv(results),
        "results.tex": to_latex(results),
    }
    if sheet := curves_sheet(results):
        made["curves.svg"] = sheet
    with Store(results.folder, read_only=True) as store:
        for _, more in hooks("files"):
            made |= more(store)
    require_no_links(results.folder, place)
    # Within a study nothing is written through links; elsewhere the folder is the user's.
    ours = results.folder in (place, *place.parents)
    write = files.write_atomically if ours else files.write_through
    for name, text in made.items():
        try:
            write(place / name, text.encode())
        except OSError as error:
            raise StudyError(f"{place / name} could not be written: {files.reason(error)}.") from error
    return tuple(place / name for name in made)


def require_no_links(study: Path, place: Path) -> None:
    """Raise :class:`StudyError` if a report at ``place`` would be written through a symbolic link within the folder
    ``study``."""
    for one in (place, *place.parents):
        if study in one.parents and one.is_symlink():
            raise StudyError(
                f"{one} is a symbolic link, and nothing is written through one within a study's folder; delete the "
                "link, or choose another folder for the report."
            )
