"""The site: it is built without a warning and without a network, and shows what the code says."""

import html
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlparse

import pytest

from paretone.measure.metrics import METRICS
from paretone.models import catalogue
from paretone.setting.profile import Profile
from paretone.techniques.registry import techniques
from tests.documents.blocks import PAGES, ROOT
from tests.workload import only_in_full

SCRIPT = ROOT / "packaging" / "docs.py"
OFFLINE = """
import socket, sys


def refuse(*_):
    raise OSError("no network while pages are built")


socket.socket.connect = socket.create_connection = refuse
"""
"""Put before whatever the interpreter runs."""


class Links(HTMLParser):
    """Addresses that a page loads by itself, and those that it leads to; the names of its places."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.led_to: list[str] = []
        self.places: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {key: value or "" for key, value in attrs}
        self.places.add(found.get("id", ""))
        if tag == "a":
            self.led_to.append(found.get("href", ""))
        elif tag in ("link", "script", "img", "audio", "source"):
            self.loaded += [found[key] for key in ("src", "href") if key in found]


@pytest.fixture(scope="module")
def docs() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPT.parent)
        return import_module("docs")


SITE = only_in_full("site")


@pytest.fixture(scope="module")
def site(docs: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built pages. Whatever asks for the network meanwhile fails."""
    folder = tmp_path_factory.mktemp("site")
    offline = tmp_path_factory.mktemp("offline")
    (offline / "sitecustomize.py").write_text(OFFLINE, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(offline))
        assert docs.build(Path(sys.executable), folder) == 0
    return folder


def shown(page: Path) -> str:
    """The text of a page."""
    article = re.search(r"<article.*?</article>", page.read_text(encoding="utf-8"), re.DOTALL)[0]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", article)).split())


@SITE
def test_every_document_is_a_page(site: Path) -> None:
    for one in PAGES.rglob("*.md"):
        assert (site / one.relative_to(PAGES).with_suffix(".html")).is_file(), one
    assert (site / "index.html").is_file()


@SITE
def test_nothing_is_fetched_and_no_link_is_dead(site: Path) -> None:
    pages = {one: Links(one) for one in site.rglob("*.html")}
    assert len(pages) > 50
    for page, links in pages.items():
        assert not [one for one in links.loaded if urlparse(one).netloc], page
        for link in [*links.loaded, *links.led_to]:
            parts = urlparse(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            assert target.exists(), f"{page.name}: {link}"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].places, f"{page.name}: {link}"


@SITE
def test_pages_of_techniques_have_their_knobs_and_what_they_combine_with(site: Path) -> None:
    for one in techniques():
        text = shown(site / "techniques" / f"{one.name}.html")
        assert one.summary in text
        for knob in one.knobs:
            assert knob.name in text and " ".join(knob.meaning.split()) in text, knob.name
    text = shown(site / "techniques" / "ditreducio.html")
    assert "it combines with: CFG-free , Average velocity , Step pruning , Precision ." in text
    assert "DiTReducio's strategy table has one column per Euler step" in text


@SITE
def test_the_reference_is_what_the_code_says(site: Path) -> None:
    numbers = shown(site / "numbers.html")
    assert all(one.title in numbers and one.definition in numbers for one in METRICS)
    knobs = shown(site / "reference" / "knobs.html")
    assert all(one.id in knobs and one.title in knobs for one in catalogue.models())
    commands = shown(site / "reference" / "commands.html")
    assert "--keep-profile FILE" in commands
    for part in ("study", "train draft", "view tables", "bench rivals"):
        assert f"paretone {part}" in commands
    messages = shown(site / "reference" / "messages.html")
    assert "Load a model of the catalogue." in messages and "JobFinished" in messages
    assert (Profile.__doc__ or "").partition(".")[0] in shown(site / "reference" / "python.html")


def test_wrong_arguments_show_how_it_is_used(docs: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert docs.main(["--help"]) == 0
    assert docs.main(["one", "two"]) == 2
    assert docs.main(["--chek"]) == docs.main(["folder", "--check"]) == 2
    assert capsys.readouterr().out.count("python3 packaging/docs.py [FOLDER | --check]") == 4


@SITE
def test_a_fault_is_a_failure(docs: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that leads nowhere, a page that is nowhere in the contents, and a part that the code does not have."""
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "index.md").write_text("# Title\n\n[Gone](gone.md)\n", encoding="utf-8")
    (pages / "other.md").write_text("# Other\n\n```{from-code} knobs nothing\n```\n", encoding="utf-8")
    said = []

    def keep(command: list[str], **options: object) -> subprocess.CompletedProcess:
        done = subprocess_run(command, capture_output=True, text=True, **options)
        said.append(done.stderr)
        return done

    subprocess_run = subprocess.run
    monkeypatch.setattr(docs, "PAGES", pages)
    monkeypatch.setattr(docs.subprocess, "run", keep)
    assert docs.build(Path(sys.executable), tmp_path / "site") != 0
    for fault in ("gone.md", "other.md", "There is no technique named 'nothing'"):
        assert fault in said[0]
