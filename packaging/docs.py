"""Build the documentation as a site of pages that can be read without a network:

    python3 packaging/docs.py [FOLDER | --check]

The pages go to FOLDER, by default ``build/docs``; open ``index.html`` there. With ``--check``, they are built to find
faults and thrown away. Every warning is an error: a link that leads nowhere, a page that is not in the contents, a
technique or a command that cannot be described.

Needs nothing but the standard library: it brings ``.venv`` up to date as ``packaging/dev.py`` does, and builds with the
Sphinx there. What it is built from: ``resources/docs`` and, for tables and references, the code.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import dev

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "resources" / "docs"
CONFIGURATION = ROOT / "packaging" / "site"
CHECK = "--check"
EXTRAS, TESTING = ("docs",), ("dev",)


def main(arguments: Sequence[str]) -> int:
    """Do what ``arguments`` say; the process's exit code."""
    asked = bool({"-h", "--help"} & set(arguments))
    wanted = arguments[0] if arguments else str(ROOT / "build" / "docs")
    if asked or len(arguments) > 1 or (wanted.startswith("-") and wanted != CHECK):
        print(__doc__)
        return 0 if asked else 2
    try:
        dev.prepare_system(dev.NEEDS["run"])
        # An environment that can test has all that is needed.
        dev.prepare_environment(TESTING if set(TESTING) <= set(dev.read_stamp().get("extras", [])) else EXTRAS)
        python = dev.environment_python()
        if wanted == CHECK:
            with tempfile.TemporaryDirectory(prefix="paretone-docs-") as folder:
                return build(python, Path(folder))
        code = build(python, Path(wanted))
    except dev.SetUpError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    if code == 0:
        dev.say(f"The pages are in {wanted}; open {Path(wanted) / 'index.html'}")
    return code


def build(python: Path, folder: Path) -> int:
    """Build all pages anew into ``folder``; the exit code is 0 if there was nothing to warn of."""
    with tempfile.TemporaryDirectory(prefix="paretone-docs-") as work:
        command = [str(python), "-m", "sphinx", "--builder", "html", "--conf-dir", str(CONFIGURATION)]
        command += ["--doctree-dir", work, "--fresh-env", "--write-all", "--quiet"]
        command += ["--fail-on-warning", "--nitpicky", str(PAGES), str(folder)]
        environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
        return subprocess.run(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
