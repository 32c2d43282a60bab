"""``paretone serve``: this machine's engine for a window elsewhere; with ``--speech-api``, a model under a profile or
setting as a server with OpenAI's form of requests."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from typing import Any

from paretone.commands import arguments, speak
from paretone.commands.command import Result
from paretone.commands.terminal import Session
from paretone.errors import SettingError, TextError
from paretone.extras import require_serving
from paretone.models import catalogue
from paretone.own_process import share_one_heap
from paretone.paths import data_folder
from paretone.remote import ENGINE
from paretone.serving import listening
from paretone.wording import counted

NAME = "serve"
SUMMARY = "Serve this machine's engine to a window elsewhere, or speech over HTTP."
LOCAL = ("127.0.0.1", "::1", "localhost")
ENGINE_ONLY, SHARED = ("grace", "stay"), ("host", "port", "token", "default", "speech_api", "run", "json", "quiet")


def declare(parser: argparse.ArgumentParser) -> None:
    served = "serve /v1/audio/speech, /v1/models, /v1/audio/voices and /health, with OpenAI's form of requests"
    parser.add_argument("--speech-api", action="store_true", help=served)
    engine = parser.add_argument_group("engine for a window elsewhere")
    then = "end after this time without a window, once its jobs are finished (default: %(default)s)"
    engine.add_argument("--grace", type=arguments.at_least(1), default=30, metavar="MINUTES", help=then)
    engine.add_argument("--stay", action="store_true", help="wait for the next window when one closes")
    group = parser.add_argument_group("server")
    where = "address to listen on (default: %(default)s, this machine only)"
    group.add_argument("--host", default=LOCAL[0], help=where)
    where = "port; 0: a free one (default: 8880 for speech, a free one for an engine)"
    group.add_argument("--port", type=arguments.port, help=where)
    group.add_argument("--token", default="", help="token that clients must send; needed beyond this machine")
    others = "requests that may wait for the one that speaks; others get 429 (default: %(default)s)"
    group.add_argument("--waiting", type=arguments.at_least(0), default=16, metavar="N", help=others)
    once = "requests that are spoken at once; paretone bench throughput says what that gains (default: 1)"
    group.add_argument("--batch", type=arguments.at_least(1), default=1, metavar="N", help=once)
    speak.declare_setting(parser)
    arguments.add_voice(parser.add_argument_group("speech"))
    parser.set_defaults(default=parser.get_default)


def run(options: argparse.Namespace, session: Session) -> Result:
    share_one_heap()  # It runs for days, and each request may have its own thread.
    for name, value in vars(options).items():
        if (name in ENGINE_ONLY) == options.speech_api and name not in SHARED and value != options.default(name):
            why = "is not for an engine, which follows its window; to serve speech over HTTP, add --speech-api"
            why = "is for an engine only; leave it out to serve speech" if options.speech_api else why
            raise SettingError(f"--{name.removesuffix('_published').replace('_', '-')} {why}.")
    if not options.speech_api:
        return _run_engine(options, session)
    require_serving()
    from paretone.serving import speech_api

    if options.host not in LOCAL and not options.token:
        raise SettingError(f"On {options.host} anybody could ask for speech; give a --token, or listen on {LOCAL[0]}.")
    port = 8880 if options.port is None else options.port
    asyncio.run(speech_api.require_free(options.host, port))
    if options.token != options.token.strip() or not options.token.isprintable():
        raise SettingError("No client can send this --token; give one without line ends, and without blanks around it.")
    spoken, model = speak.prepared(options, session)
    chosen = {name: getattr(options, name) for name in ("token", "waiting", "folder", "batch")}
    server = speech_api.SpeechServer(session.executor, spoken, **chosen)
    # Weights of techniques load with the first text, and kernels are chosen: before anybody waits for them.
    session.terminal.status("Warming up")
    text = catalogue.harvard_sentences()[0]
    with suppress(TextError):  # Of a model that does not speak English.
        session.carry_out(replace(spoken, text=text))
        # Those for passes of several texts, too; few words do.
        server.speak_at_once(" ".join(text.split()[:3]), session.terminal.cancelled)

    async def serve() -> None:
        async with listening(server.application(), options.host, port, speech_api.GRACE_SECONDS) as (where, bound):
            address = f"http://{where}:{bound}/v1/audio/speech"
            session.terminal.say(f"{model.info.title} speaks at {address}; Ctrl-C ends it.")
            while not session.terminal.cancelled.is_set():  # Asked by this thread: then no signal insists.
                await asyncio.sleep(0.1)

    asyncio.run(serve())
    return Result({"spoken": server.spoken}, f"Spoke {counted(server.spoken, 'text', 'texts')}.")


def _run_engine(options: argparse.Namespace, session: Session) -> Result:
    require_serving("An engine elsewhere")
    from paretone.remote import server

    if options.host != LOCAL[0] or options.token:
        alone = f"An engine listens on {LOCAL[0]} only and makes its own token"
        raise SettingError(f"{alone}; leave --host and --token out.")
    where = server.state_file(data_folder())

    def ready(found: dict[str, Any], ends: str = "Ctrl-C ends it.") -> None:
        if sys.stdout.isatty():
            session.terminal.say(f"The engine listens on port {found['port']}; its token is in {where}. {ends}")
            return
        with suppress(OSError):  # The program that started this may be gone, and the engine stays.
            print(f"{ENGINE} {json.dumps(found)}", flush=True)

    if (there := server.running(data_folder())) is not None:
        ready(there, "It ends where it was started.")
        return Result({"port": there["port"]}, "An engine of yours runs here already.")
    if hasattr(signal, "SIGHUP"):  # The line that started it may break.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    served = server.EngineServer(data_folder(), grace=60.0 * options.grace, stay=options.stay)
    asyncio.run(server.serve(served, options.port or 0, ready, session.terminal.cancelled.is_set))
    return Result({}, "The engine ended.")
