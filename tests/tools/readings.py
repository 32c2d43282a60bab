"""The reading table of ``resources/docs/text.md``: sentences of each semiotic class, and how many of them earlier
versions of the reader and this one read rightly.

    python -m tests.tools.readings --before 2cc13ff1^ 3e308c94

Earlier versions are taken from the repository's history.
"""

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from paretone.front_end.writing import write_out
from tests.engine.front_end.references import heard, written

_READ = """
import json, sys
from paretone.front_end import phonemiser
from paretone.front_end.writing import write_out
def read(text):
    if not hasattr(write_out(text), "sentences"):  # Before text was classified, sentences were cut first.
        return [write_out(one).text for one in phonemiser.sentences(text)]
    return [one.text for one in write_out(text).sentences]
def tried(text):
    try:
        return read(text)
    except ValueError:  # Some failed at numbers such as $7×10⁻⁴.
        return []
print(json.dumps([tried(one) for one in json.load(sys.stdin)]))
"""


def earlier(revision: str, texts: list[str]) -> list[list[str]]:
    """Sentences that the reader of ``revision`` makes of each text."""
    root = Path(__file__).resolve().parents[2]
    archive = subprocess.run(["git", "archive", revision, "engine"], cwd=root, capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        os.symlink(root / "resources", Path(folder) / "resources")
        environment = {**os.environ, "PYTHONPATH": f"{folder}/engine"}
        command, given = [sys.executable, "-c", _READ], json.dumps(texts)
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, check=True, env=environment, cwd=folder
        )
    return json.loads(done.stdout)


def table(revisions: list[str]) -> str:
    rows = written()
    texts = [text for _, text, _ in rows]
    readings = [earlier(one, texts) for one in revisions]
    readings.append([[one.text for one in write_out(text).sentences] for text in texts])
    kinds = list(dict.fromkeys(kind for kind, _, _ in rows))
    right = [[heard(found) == words for found, (_, _, words) in zip(read, rows, strict=True)] for read in readings]
    lines = [f"| class | sentences | {' | '.join(f'right, {one}' for one in (*revisions, 'now'))} |"]
    lines.append("|---|" + "---:|" * (len(readings) + 1))
    for kind in (*kinds, ""):
        places = [place for place, row in enumerate(rows) if kind in ("", row[0])]
        counts = " | ".join(str(sum(one[place] for place in places)) for one in right)
        lines.append(f"| {kind or '**all**'} | {len(places)} | {counts} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", nargs="*", default=[], metavar="REVISION", help="earlier versions to compare with")
    print(table(parser.parse_args().before))
