"""What setuptools does when it builds a wheel: bundled weights are packed, so that package registries take it.

``pyproject.toml`` names the class. Installations in place (``--editable``) use the weights as they are.
"""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent.parent
MODELS = Path("resources", "models")


class PackedBuild(build_py):
    """Copies the packages, then replaces the copied weights by packed ones."""

    def run(self) -> None:
        """As the base class says."""
        super().run()
        if self.editable_mode:
            return
        # Imported here: an installation in place happens before these are there.
        sys.path.insert(0, str(ROOT))
        from engine.models.files.packing import pack_models

        # From the originals: what lies in the build folder may be packed already.
        pack_models(ROOT / MODELS, Path(self.build_lib) / MODELS)

    def get_source_files(self) -> list[str]:
        """What a source distribution needs: this file, too."""
        return [*super().get_source_files(), Path(__file__).resolve().relative_to(ROOT).as_posix()]
