"""Optional packages: what sentences name, what is asked for, and installing them by the real installer."""

import importlib
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from paretone import extras
from paretone.errors import Cancelled, PlainError
from paretone.extras import EXTRAS, Extra, named_in
from paretone.measure.evaluation.judges import JUDGES
from tests.tiny_package import MODULE, tiny_package

TINY = Extra("tiny", "Something tiny", (MODULE,))


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that the installer finds without the network."""
    with tiny_package(tmp_path, monkeypatch):
        yield


def ask_for(monkeypatch: pytest.MonkeyPatch, *wanted: str) -> None:
    monkeypatch.setattr(extras, "requirements", lambda name: wanted)


needs_pip = pytest.mark.skipif(not extras.installer(), reason="neither pip nor uv is installed")


@needs_pip
def test_a_package_is_installed_and_can_be_used_at_once(tiny: None, monkeypatch: pytest.MonkeyPatch) -> None:
    ask_for(monkeypatch, "paretone-tiny>=1")
    assert TINY.missing == ("paretone_tiny",)
    told: list[tuple[int, int, str]] = []
    assert extras.install(TINY, lambda *said: told.append(said), lambda: None)
    assert TINY.missing == ()
    assert importlib.import_module("paretone_tiny").ANSWER == 42
    assert [phase for phase, _, _ in told] == sorted(phase for phase, _, _ in told)
    assert told[-1] == (3, 3, "Installed: Something tiny")


@needs_pip
def test_what_fails_is_one_sentence(tiny: None, monkeypatch: pytest.MonkeyPatch) -> None:
    ask_for(monkeypatch, "paretone-tiny>=2")
    with pytest.raises(PlainError) as raised:
        extras.install(TINY, lambda *said: None, lambda: None)
    assert str(raised.value).startswith("paretone_tiny could not be installed: ")
    assert str(raised.value).endswith("Check the network, then try again.")
    assert "\n" not in str(raised.value) and "paretone-tiny>=2" in str(raised.value)


@needs_pip
def test_cancelling_ends_the_installer(tiny: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for a server that never answers."""
    ask_for(monkeypatch, "paretone-tiny")
    asked = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept: list[socket.socket] = []

        def accept() -> None:
            kept.append(server.accept()[0])
            asked.set()

        threading.Thread(target=accept, daemon=True).start()
        for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.getsockname()[1]}/simple")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")

        def check() -> None:
            if asked.is_set():
                raise Cancelled

        began = []
        real = extras.subprocess.Popen
        monkeypatch.setattr(
            extras.subprocess, "Popen", lambda *given, **more: began.append(real(*given, **more)) or began[-1]
        )
        with pytest.raises(Cancelled):
            extras.install(TINY, lambda *said: None, check)
        for one in kept:
            one.close()
    assert began[0].poll() is not None
    assert TINY.missing


def test_what_is_installed_stays_as_it_is() -> None:
    with extras.constraints_file() as path:
        lines = path.read_text(encoding="utf-8").splitlines()
    from importlib.metadata import version

    names = [one.partition("==")[0] for one in lines]
    assert f"numpy=={version('numpy')}" in lines
    assert "paretone" not in names and len(set(names)) == len(names)


def test_nothing_is_installed_outside_an_environment_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    assert "outside a virtual environment" in extras.why_no_installing()
    with pytest.raises(PlainError, match="outside a virtual environment"):
        extras.install(TINY, lambda *said: None, lambda: None)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert "cannot add packages" in extras.why_no_installing()


def test_every_extra_is_declared_and_asks_for_its_packages() -> None:
    for one in EXTRAS:
        assert extras.requirements(one.name), one.name
        assert extras.extra(one.name) is one
    with pytest.raises(PlainError, match="did you mean 'train'"):
        extras.extra("trian")


def test_an_installed_package_tells_its_extras_by_its_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "PROJECT", tmp_path / "absent.toml")
    stated = ["numpy>=2.1", 'optuna>=5; extra == "search"', "x (>=1) ; python_version > '3' and extra == 'search'"]
    monkeypatch.setattr(extras, "requires", lambda name: stated)
    assert extras.requirements("search") == ("optuna>=5", "x (>=1)")
    assert extras.requirements("train") == ()


def test_sentences_that_say_what_to_install_are_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    monkeypatch.setattr("paretone.measure.evaluation.judges.find_spec", lambda name: None)
    assert named_in(extras.why_no_search()).name == "search"
    assert named_in(extras.why_no_cluster()).name == "cluster"
    assert named_in(extras.why_no_training()).name == "train"
    named = {one.name: named_in(one.problem()) for one in JUDGES}
    expected = {"paraformer": "mandarin"} | dict.fromkeys(("words", "naturalness", "voice"), "judge")
    expected |= dict.fromkeys(("whisper", "similarity", "utmos", "dnsmos"), "publish")
    assert {name: one.name for name, one in named.items() if one} == expected
    assert named_in("Chinese text needs pypinyin; install it with: pip install paretone[chinese]").name == "chinese"
    assert named_in("Nothing is missing.") is None
    monkeypatch.setattr(extras, "find_spec", lambda name: object())
    assert named_in("run: pip install 'paretone[search]'") is None, "it is there"
