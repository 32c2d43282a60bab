"""Downloads from a real server on this machine that behaves like the Hugging Face Hub, with faults on request."""

import hashlib
import os
import shutil
import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from paretone.errors import Cancelled, PlainError
from paretone.models import catalogue
from paretone.models.catalogue import entry, models
from paretone.models.files import releases
from paretone.models.files.releases import LICENCES, NON_COMMERCIAL, Release, download, extent
from paretone.models.megatts3.checkpoint import OfficialFolder
from tests.engine.models.hub import CONTENT, SHARDS, WEIGHTS, Hub, assert_complete, files_of

pytest.importorskip("huggingface_hub")


class Watcher:
    def __init__(self, limit: float = float("inf")) -> None:
        self.limit = limit
        self.written: tuple[Path, ...] = ()
        self.seen: list[tuple[int, int, str]] = []

    def progress(self, done: int, total: int, text: str) -> None:
        self.seen.append((done, total, text))

    def check(self) -> None:
        if self.seen and self.seen[-1][0] >= self.limit:
            raise Cancelled


def fetch(hub: Hub, folder: Path, watcher: Watcher | None = None, model: str = "F5TTS_v1_Base") -> Watcher:
    watcher = watcher or Watcher()
    release = entry(model).release
    watcher.written = download(release, folder, release.licence, watcher.progress, watcher.check, hub.address)
    return watcher


def fetch_nothing(hub: Hub, folder: Path, model: str = "F5TTS_v1_Base") -> None:
    hub.requests.clear()
    fetch(hub, folder, model=model)
    assert not [request for request in hub.requests if request[0] == "GET"]


def sizes(model: str) -> list[tuple[str, int]]:
    addresses = [f"/{one.repository}/resolve/main/{one.name}" for one in files_of(model)]
    return [(address, len(CONTENT[address])) for address in addresses]


@pytest.mark.parametrize("model", ["F5TTS_Base", "Llasa-3B"])
def test_fetches_a_model_and_its_vocoder(hub: Hub, tmp_path: Path, model: str) -> None:
    watcher = fetch(hub, tmp_path / "models" / model, model=model)
    assert_complete(tmp_path / "models" / model, model)
    vocoder = tmp_path / "models" / "vocos-mel-24khz" / "config.yaml"
    assert vocoder.is_file() == any("vocos" in one.saved_as for one in entry(model).release.files)
    done = [entry[0] for entry in watcher.seen]
    total = sum(size for _, size in sizes(model))
    assert done == sorted(done) and done[0] == 0 and done[-1] == total
    assert {entry[1] for entry in watcher.seen} == {total}
    assert len(done) >= 2 * len(files_of(model))


def test_shards_are_those_that_the_index_lists(hub: Hub, tmp_path: Path) -> None:
    known = extent(entry("Llasa-3B").release, tmp_path / "m", Watcher().check, hub.address)
    assert {one.name for one in known.sizes} > set(SHARDS) and not (tmp_path / "m").exists()
    assert {one.licence for one in known.sizes} == {"CC-BY-NC-4.0"}
    assert {path.name for path in fetch(hub, tmp_path / "m", model="Llasa-3B").written} > set(SHARDS)
    fetch_nothing(hub, tmp_path / "m", "Llasa-3B")


@pytest.mark.parametrize("content", [b"<html>", b'{"weight_map": {"a": "../b"}}'])
def test_an_empty_index_is_refused(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setitem(CONTENT, "/HKUSTAudio/Llasa-8B/resolve/main/model.safetensors.index.json", content)
    with pytest.raises(PlainError, match="is not a list of files any more"):
        fetch(hub, tmp_path / "m", model="Llasa-8B")


def test_a_release_of_several_parts_is_laid_out_in_their_folders(hub: Hub, tmp_path: Path) -> None:
    watcher = fetch(hub, tmp_path / "m", model="MegaTTS3")
    OfficialFolder(tmp_path / "m").require_parts()
    assert catalogue.entry("MegaTTS3").licence == "Apache-2.0"
    assert "Downloading aligner_lm/model_only_last.ckpt" in {text for _, _, text in watcher.seen}
    # The encoder was withheld: nothing of that name must be looked for.
    assert not [path for _, path, _ in hub.requests if path.endswith("wavvae/model_only_last.ckpt")]


def test_how_much_there_is_to_fetch(hub: Hub, tmp_path: Path) -> None:
    total = sum(size for _, size in sizes("F5TTS_Base"))
    before = extent(entry("F5TTS_Base").release, tmp_path / "m", Watcher().check, hub.address)
    assert before.total == before.missing == total
    assert [before.sizes[one] for one in entry("F5TTS_Base").release.files] == [size for _, size in sizes("F5TTS_Base")]
    assert not hub.transfers()
    fetch(hub, tmp_path / "m", model="F5TTS_Base")
    after = extent(entry("F5TTS_Base").release, tmp_path / "m", Watcher().check, hub.address)
    assert (after.total, after.missing) == (total, 0)


def test_a_transfer_that_breaks_off_is_resumed_at_once(hub: Hub, tmp_path: Path) -> None:
    hub.break_off_after = [300_000, 200_000]
    watcher = fetch(hub, tmp_path / "m")
    assert_complete(tmp_path / "m")
    first, second, third = hub.transfers()
    assert first is None
    assert 0 < int(second[6:-1]) <= 300_000 < int(third[6:-1]) <= 500_000
    assert watcher.seen[-1][0] == watcher.seen[-1][1]


def test_a_cancelled_download_is_resumed_the_next_time(hub: Hub, tmp_path: Path) -> None:
    others = sum(size for _, size in sizes("F5TTS_v1_Base")) - len(CONTENT[WEIGHTS])
    with pytest.raises(Cancelled):
        fetch(hub, tmp_path / "m", Watcher(limit=others + 500_000))
    (part,) = (tmp_path / "m").glob("model_1250000.safetensors.*.part")
    kept = part.stat().st_size
    assert 500_000 <= kept < len(CONTENT[WEIGHTS])
    assert not (tmp_path / "m" / "model_1250000.safetensors").exists()
    hub.requests.clear()
    watcher = fetch(hub, tmp_path / "m")
    assert hub.transfers() == [f"bytes={kept}-"]
    assert watcher.seen[0][0] >= kept
    assert_complete(tmp_path / "m")


def test_a_server_without_ranges_starts_again(hub: Hub, tmp_path: Path) -> None:
    hub.knows_ranges = False
    hub.break_off_after = [300_000]
    watcher = fetch(hub, tmp_path / "m")
    assert_complete(tmp_path / "m")
    assert watcher.seen[-1][0] == watcher.seen[-1][1]
    assert any(after[0] < before[0] for before, after in zip(watcher.seen, watcher.seen[1:], strict=False))


def test_a_server_that_brings_nothing_is_given_up(hub: Hub, tmp_path: Path) -> None:
    hub.break_off_after = [0] * 100
    with pytest.raises(PlainError, match="check the network connection"):
        fetch(hub, tmp_path / "m")
    assert len(hub.transfers()) == releases.ATTEMPTS


def test_damaged_files_are_not_kept(hub: Hub, tmp_path: Path) -> None:
    hub.damages = True
    with pytest.raises(PlainError, match=r"vocab\.txt was damaged during the download"):
        fetch(hub, tmp_path / "m")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize(("status", "message"), [(403, "refuses"), (500, "status 500")])
def test_a_refusal_says_what_to_do(hub: Hub, tmp_path: Path, status: int, message: str) -> None:
    hub.status[WEIGHTS] = status
    with pytest.raises(PlainError, match=message):
        fetch(hub, tmp_path / "m")


def test_a_full_disk_is_noticed_beforehand(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(PlainError, match=r"0\.0 MB of free space, but the download takes"):
        fetch(hub, tmp_path / "m")
    assert not hub.transfers()


def test_links_stay_and_their_targets_are_written(hub: Hub, tmp_path: Path) -> None:
    big, folder = tmp_path / "big disk", tmp_path / "m"
    big.mkdir()
    link = folder / files_of("F5TTS_v1_Base")[0].saved_as
    link.parent.mkdir(parents=True)
    link.symlink_to(big / "weights")
    fetch(hub, folder)
    assert link.is_symlink() and not (big / "weights").is_symlink()
    assert_complete(folder, "F5TTS_v1_Base")
    assert [one.name for one in big.iterdir()] == ["weights"]
    fetch_nothing(hub, folder)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such things in folders")
@pytest.mark.parametrize(
    ("lay", "words"),
    [
        (os.mkfifo, "it is a pipe or a device; delete it"),
        (Path.mkdir, "it is a folder"),
        (lambda place: place.symlink_to("/dev/null"), "it is a pipe or a device"),
        (lambda place: place.symlink_to("missing/weights"), "whose folder does not exist; create it, or delete"),
        (lambda place: place.symlink_to("0123456789abcdef" * 4), "which others keep under its checksum; delete"),
        (lambda place: place.symlink_to(place), "it is a symbolic link that leads back to itself"),
    ],
    ids=["pipe", "folder", "device", "dangling", "cache", "circle"],
)
def test_no_place_for_a_file_is_said_beforehand(hub: Hub, tmp_path: Path, lay: Callable, words: str) -> None:
    place = tmp_path / "m" / files_of("F5TTS_v1_Base")[0].saved_as
    place.parent.mkdir(parents=True)
    lay(place)
    kind = stat.S_IFMT(place.lstat().st_mode)
    with pytest.raises(PlainError, match=f"{place} cannot be written: .*{words}"):
        fetch(hub, tmp_path / "m")
    assert stat.S_IFMT(place.lstat().st_mode) == kind and not [one for one in hub.requests if one[0] == "GET"]


@pytest.mark.parametrize("licence", ["", "MIT"])
def test_the_licence_has_to_be_accepted(hub: Hub, tmp_path: Path, licence: str) -> None:
    with pytest.raises(PlainError, match=r"published under CC-BY-NC-4\.0; accept"):
        download(entry("F5TTS_Base").release, tmp_path, licence, print, lambda: None, hub.address)
    assert not hub.requests


def test_declared_sizes_and_hashes_are_held(hub: Hub, tmp_path: Path) -> None:
    file = files_of("F5TTS_Base")[0]
    content = CONTENT[f"/{file.repository}/resolve/main/{file.name}"]
    right = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}

    def fetched(**declared: object) -> tuple[Path, ...]:
        release = Release(file.licence, (replace(file, **declared),))
        return download(release, tmp_path / "m", file.licence, lambda *_: None, lambda: None, hub.address)

    with pytest.raises(PlainError, match=r"bytes, but 3 are declared; update its package"):
        fetched(size=3)
    with pytest.raises(PlainError, match="was damaged during the download"):
        fetched(**right | {"sha256": "ab" * 32})
    assert fetched(**right)[0].read_bytes() == content


def test_every_licence_can_be_read() -> None:
    assert {one.licence for model in models() if model.release for one in model.release.files} == set(LICENCES)


def test_unknown_models_and_a_missing_package_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PlainError, match=r"F5 mini comes with Paretone; there is nothing to download"):
        download(entry("f5-mini").published, tmp_path, NON_COMMERCIAL, print, lambda: None)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(PlainError, match=r"pip install 'paretone\[download\]"):
        download(entry("F5TTS_Base").release, tmp_path, NON_COMMERCIAL, print, lambda: None)
