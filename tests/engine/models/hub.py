"""A real server on this machine that behaves like the Hugging Face Hub, with faults on request."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from paretone.models.catalogue import entry, models
from paretone.models.files.releases import INDEX, RemoteFile

SHARDS = tuple(f"model-0000{number}-of-00002.safetensors" for number in (1, 2))


def _content(name: str) -> bytes:
    if name == INDEX:
        return json.dumps({"weight_map": {f"layer.{number}": shard for number, shard in enumerate(SHARDS)}}).encode()
    return (name.encode() + b" ") * (40_000 if "model" in name else 50)


def files_of(model: str) -> tuple[RemoteFile, ...]:
    """All files of a release, the shards that its index lists included."""
    files = entry(model).release.files
    shards = (replace(one, name=name, saved_as=name) for one in files if one.index for name in SHARDS)
    return *files, *shards


CONTENT = {
    f"/{one.repository}/resolve/main/{one.name}": _content(one.name)
    for model in (each.id for each in models() if each.release)
    for one in files_of(model)
}
WEIGHTS = "/SWivid/F5-TTS/resolve/main/F5TTS_v1_Base/model_1250000.safetensors"


class Hub(ThreadingHTTPServer):
    """The server. ``requests`` are (method, path, range)."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.requests: list[tuple[str, str, str | None]] = []
        self.break_off_after: list[int] = []
        """Bytes after which the next transfers of the weights break off."""
        self.before_break_off: Callable[[], None] = lambda: None
        """Called when these bytes have been sent."""
        self.status: dict[str, int] = {}
        self.knows_ranges = True
        self.damages = False

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: clients that hang up are what some tests are about."""

    def transfers(self, path: str = WEIGHTS) -> list[str | None]:
        return [given for method, asked, given in self.requests if method == "GET" and asked == path]


class Answer(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        given = self.headers.get("Range")
        self.server.requests.append((self.command, self.path, given))
        content = CONTENT.get(self.path)
        status = self.server.status.get(self.path, 200 if content else 404)
        if status != 200:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        start = int(given.removeprefix("bytes=").removesuffix("-")) if given and self.server.knows_ranges else 0
        body = content[start:]
        self.send_response(206 if start else 200)
        self.send_header("X-Repo-Commit", "c" * 40)
        # Small files have git's checksum, large ones SHA-256, as on the Hub.
        digest = hashlib.sha1(b"blob %d\0" % len(content)) if len(content) < 10_000 else hashlib.sha256()
        digest.update(content)
        self.send_header("ETag", f'"{digest.hexdigest()}"')
        self.send_header("Content-Length", str(len(body)))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        if self.command == "HEAD":
            return
        body = body[:-1] + b"?" if self.server.damages else body
        if self.path == WEIGHTS and self.server.break_off_after:
            self.wfile.write(body[: self.server.break_off_after.pop(0)])
            self.server.before_break_off()
            self.close_connection = True
            self.connection.shutdown(2)
            return
        self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *arguments: object) -> None:
        """Nothing: pytest's output is not a server's log."""


def assert_complete(folder: Path, model: str = "F5TTS_v1_Base") -> None:
    for one in files_of(model):
        assert (folder / one.saved_as).resolve().read_bytes() == CONTENT[f"/{one.repository}/resolve/main/{one.name}"]
    assert not list(folder.parent.rglob("*.part"))
