"""What the load client costs: its processor time a request with many streams at once, against a server that only sends.

The server, in a process of its own, sends two seconds of sound in twenty pieces at the pace at which they play, so
that all streams are open at once; on one core the client must keep up with all of them, which no failure and small gaps
show.
"""

import argparse
import asyncio
import multiprocessing
from multiprocessing.connection import Connection

from paretone.bench.bundled import say
from paretone.bench.report import Report
from paretone.commands.arguments import positive
from paretone.measure.timing import interval
from paretone.serving.load import PCM_RATE, measure
from paretone.serving.records import Level, Order, Target

NAME = "load-client"
PIECES, PIECE_SECONDS = 20, 0.1
MOST_MILLISECONDS = 1.0
"""Of the client's processor time a request."""
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: audio/pcm\r\nTransfer-Encoding: chunked\r\n\r\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--streams", type=positive, default=200, help="streams at once (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="measurements (default: %(default)s)")


def run(arguments: argparse.Namespace) -> Report:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=_serve, args=(theirs,), daemon=True)
    server.start()
    target, rows = Target(f"http://127.0.0.1:{ours.recv()}"), []
    try:
        for number in range(arguments.rounds):
            order = Order(target, ("Rice.",), requests=2 * arguments.streams, warm_up=1)
            row = measure(order, Level(clients=arguments.streams)).row()
            rows.append(
                {
                    "round": number + 1,
                    "ms a request": row["client_milliseconds"],
                    "failed": row["failed"],
                    "largest gap p95 (s)": row["largest_gap_p95"],
                    "requests/s": row["requests_per_second"],
                }
            )
            say(f"round {number + 1} of {arguments.rounds}")
    finally:
        server.terminate()
        server.join()
    cost = interval([row["ms a request"] for row in rows])
    kept = cost.median <= MOST_MILLISECONDS and not any(row["failed"] for row in rows)
    definition = (
        f"Milliseconds of processor time that the load client takes per request of {PIECES} pieces, with "
        f"{arguments.streams} streams at once."
    )
    return Report.of(NAME, cost, definition, rows, "passes" if kept else f"fails {MOST_MILLISECONDS:g} ms")


def _serve(told: Connection) -> None:
    asyncio.run(_sending(told))


async def _sending(told: Connection) -> None:
    piece = b"\0\1" * round(PIECE_SECONDS * PCM_RATE)  # Not zeros: a silent answer is a failure.
    chunk = f"{len(piece):x}\r\n".encode() + piece + b"\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                await reader.readexactly(length)
                writer.write(_HEAD)
                for _ in range(PIECES):
                    writer.write(chunk)
                    await asyncio.sleep(PIECE_SECONDS)
                writer.write(b"0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
    told.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()
