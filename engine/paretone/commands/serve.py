"""``paretone serve --speech-api``: a model under a profile or a setting, as a server with OpenAI's form of requests."""

from __future__ import annotations

import argparse

from paretone.commands import arguments, speak
from paretone.commands.command import Result
from paretone.commands.terminal import Session
from paretone.errors import SettingError
from paretone.extras import require_serving
from paretone.wording import counted

NAME = "serve"
SUMMARY = "Serve speech over HTTP, with OpenAI's form of requests."
WAITING = 16
"""Requests that may wait for the one that speaks."""
LOCAL = ("127.0.0.1", "::1", "localhost")


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--speech-api", action="store_true", help="serve /v1/audio/speech, /v1/models, /v1/audio/voices and /health"
    )
    group = parser.add_argument_group("server")
    group.add_argument(
        "--host", default=LOCAL[0], help="address to listen on (default: %(default)s, this machine only)"
    )
    group.add_argument("--port", type=arguments.at_least(0), default=8880, help="port; 0: a free one (default: 8880)")
    group.add_argument("--token", default="", help="token that clients must send; needed beyond this machine")
    group.add_argument(
        "--waiting",
        type=arguments.at_least(0),
        default=WAITING,
        metavar="N",
        help="requests that may wait for the one that speaks; others get 429 (default: %(default)s)",
    )
    group.add_argument(
        "--batch",
        type=arguments.at_least(1),
        default=1,
        metavar="N",
        help="requests that are spoken at once; paretone bench throughput says what that gains (default: 1)",
    )
    speak.declare_setting(parser)
    arguments.add_voice(parser.add_argument_group("speech"))


def run(options: argparse.Namespace, session: Session) -> Result:
    require_serving()
    from paretone.serving import speech_api

    if not options.speech_api:
        raise SettingError("There is nothing to serve; give --speech-api.")
    if options.host not in LOCAL and not options.token:
        raise SettingError(f"On {options.host} anybody could ask for speech; give a --token, or listen on {LOCAL[0]}.")
    spoken, model = speak.prepared(options, session)
    server = speech_api.SpeechServer(
        session.executor,
        spoken,
        token=options.token,
        waiting=options.waiting,
        folder=options.folder,
        batch=options.batch,
    )

    def ready(address: str) -> None:
        session.terminal.say(f"{model.info.title} speaks at {address}/v1/audio/speech; Ctrl-C ends it.")

    speech_api.run(server, options.host, options.port, ready, session.terminal.cancelled.is_set)
    return Result({"spoken": server.spoken}, f"Spoke {counted(server.spoken, 'text', 'texts')}.")
