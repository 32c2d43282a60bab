"""What setuptools does when it builds a wheel: bundled weights are packed, so that package registries take it.

``pyproject.toml`` names the class. Installations in place (``--editable``) use the weights as they are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent.parent
RESOURCES = ROOT / "resources"
INSTALLED = Path("paretone", "resources")
"""Where the package finds them once it is installed."""


class PackedBuild(build_py):
    """Copies the packages, then replaces the copied weights by packed ones."""

    def run(self) -> None:
        """As the base class says."""
        super().run()
        if self.editable_mode:
            return
        # Imported here: an installation in place happens before these are there.
        sys.path[:0] = [str(ROOT / "engine"), str(ROOT / "packaging")]
        from packing import pack_models

        there = Path(self.build_lib) / INSTALLED
        for path in self._resources():
            copy = there / path.relative_to(RESOURCES)
            self.mkpath(str(copy.parent))
            self.copy_file(str(path), str(copy))
        # From the originals: what lies in the build folder may be packed already.
        pack_models(RESOURCES / "models", there / "models")

    def get_source_files(self) -> list[str]:
        """What a source distribution needs: this file, the one that packs, and the resources, too."""
        this = Path(__file__).resolve()
        own = (this, this.with_name("packing.py"), *self._resources())
        return [*super().get_source_files(), *(one.relative_to(ROOT).as_posix() for one in own)]

    @staticmethod
    def _resources() -> Iterator[Path]:
        """All but the pages and their pictures, which are read on the web; nothing opens them at run time."""
        for path in sorted(RESOURCES.rglob("*")):
            if path.is_file() and path.relative_to(RESOURCES).parts[0] != "docs":
                yield path
