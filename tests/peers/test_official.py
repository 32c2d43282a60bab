"""The official package's environment."""

import subprocess
import sys
from pathlib import Path

import pytest

import paretone
from paretone.errors import PlainError
from tests import official as shared
from tests.peers import official


def pip_that_says(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """Let a process that fails with these lines stand where pip is started."""
    start = subprocess.Popen
    code = f"print({chr(10).join(lines)!r}); raise SystemExit(1)"
    monkeypatch.setattr(
        official.subprocess,
        "Popen",
        lambda command, **options: start([sys.executable, "-c", code] if "pip" in command else command, **options),
    )


def test_unreachable_registry_is_told_from_other_failures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "f5-tts"
    pip_that_says(monkeypatch, "WARNING: Retrying after NewConnectionError", "ERROR: No matching distribution found")
    with pytest.raises(official.RegistryUnreachable, match="does not answer"):
        official.environment(lambda line: None, folder)
    pip_that_says(monkeypatch, "ERROR: Could not install packages due to an OSError: No space left on device")
    with pytest.raises(PlainError, match="No space left"):
        official.environment(lambda line: None, folder)
    assert list(tmp_path.iterdir()) == [], "what was not finished is not left behind"


def test_models_are_not_there_outside() -> None:
    assert not official.inside()
    with pytest.raises(PlainError, match="own environment"):
        official.import_models()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_environment_shares_torch_and_has_the_official_classes() -> None:
    # Found, not imported, which takes five seconds; who compares with the classes imports them.
    code = (
        "from tests.peers import official; official.import_models();"
        "from importlib.util import find_spec; from importlib.metadata import version;"
        "places = [find_spec(name).origin for name in ('torch', 'paretone', 'f5_tts.model.cfm')];"
        "print(*places, version('f5-tts'), sep='\\n')"
    )
    done = subprocess.run([shared.python(), "-c", code], capture_output=True, text=True, check=True, cwd=official.ROOT)
    torch_file, engine_file, package, version = done.stdout.split("\n")[:4]
    folder = str(shared.FOLDER)
    assert version == official.F5.version
    assert package.startswith(folder)
    assert not torch_file.startswith(folder)
    assert engine_file == paretone.__file__
    assert official.environment(pytest.fail, shared.FOLDER) == shared.python(), "made once"
