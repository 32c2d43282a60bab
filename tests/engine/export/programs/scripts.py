"""Profiles to export, and written scripts that run with a command on the path that tells what it was called with."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from paretone.models.catalogue import entry
from paretone.setting.profile import Profile
from paretone.setting.setting import Setting, UsedTechnique

needs_shell = pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell")
TELLING = """#!{python}
import json, os, sys
print(json.dumps([sys.argv[1:], dict(os.environ)]))
"""


def profile(model: str, *techniques: UsedTechnique, seed: int = 5, **options: object) -> Profile:
    """A profile of ``model``, made on a checkpoint that is not here."""
    chosen = entry(model)
    setting = Setting(chosen.id, chosen.options_with(**options), seed=seed)
    for one in techniques:
        setting = setting.with_technique(one)
    return Profile(setting, "a" * 64, chosen.variant or chosen.id)


def called(script: Path, command: str, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """Words and variables that ``script`` calls ``command`` with."""
    place = script.parent / "bin of a test"
    place.mkdir(exist_ok=True)
    program = place / command
    program.write_text(TELLING.format(python=sys.executable))
    program.chmod(0o755)
    path = {**os.environ, "PATH": f"{place}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["sh", str(script), *arguments], capture_output=True, text=True, check=True, env=path)
    words, variables = json.loads(done.stdout)
    return words, variables


def flags(words: list[str]) -> dict[str, str]:
    """Words as flags with their values; a flag that another follows has none."""
    pairs = zip(words, [*words[1:], "--"], strict=True)
    return {one: "" if after.startswith("--") else after for one, after in pairs if one.startswith("--")}
