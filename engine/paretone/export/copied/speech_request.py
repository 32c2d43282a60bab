# Copyright 2026 The Paretone authors. Licensed under the Apache License, Version 2.0:
# https://www.apache.org/licenses/LICENSE-2.0
"""Asks a running vLLM-Omni server to speak a text with the fields of request.json. Needs nothing but Python.

python speech_request.py "A text." --voice reference.wav --transcript "What is said in it." --out out.wav
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
SECONDS = 600
"""Timeout of a request (s)."""


def body(text: str, voice: str = "", transcript: str = "", fields: Path = HERE / "request.json") -> bytes:
    """Request body: the profile's fields, the text, and the reference recording with its transcript."""
    request = json.loads(fields.read_text(encoding="utf-8")) | {"input": text}
    if voice:
        sound = base64.b64encode(Path(voice).read_bytes()).decode()
        request["ref_audio"] = f"data:audio/wav;base64,{sound}"
    if transcript:
        request["ref_text"] = transcript
    return json.dumps(request).encode()


def ask(server: str, request: bytes) -> bytes:
    """Send the request and return the WAV file. Raises :class:`OSError` with the server's message on failure."""
    asked = urllib.request.Request(
        f"{server.rstrip('/')}/v1/audio/speech", request, {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(asked, timeout=SECONDS) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        raise OSError(f"the server answers {error.code}: {error.read(2000).decode(errors='replace')}") from error


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text")
    parser.add_argument("--voice", default="", help="reference recording, a WAV file")
    parser.add_argument("--transcript", default="", help="what is said in the recording")
    parser.add_argument("--out", default="out.wav")
    parser.add_argument("--server", default="http://localhost:8091")
    given = parser.parse_args()
    try:
        sound = ask(given.server, body(given.text, given.voice, given.transcript))
        Path(given.out).write_bytes(sound)
    except (OSError, ValueError) as error:
        print(f"{given.server} did not speak: {error}", file=sys.stderr)
        return 1
    print(f"Wrote {given.out} ({len(sound)} bytes).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
