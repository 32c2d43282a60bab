"""An address where no Ray cluster can be is said at once."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from paretone import cli
from paretone.errors import StudyError
from paretone.studies.cluster import require_cluster
from tests.engine.test_cli_study import STUDY

SETTINGS = bytes([0, 0, 6, 4, 0, 0, 0, 0, 0])
"""How a server of HTTP/2 begins."""


@pytest.fixture
def free() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def listening(request: pytest.FixtureRequest) -> Iterator[int]:
    """A port that answers a greeting with ``request.param``; with ``None`` it stays silent."""
    server = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        with server.accept()[0] as connection:
            connection.recv(100)
            if request.param is None:
                connection.recv(100)
            else:
                connection.sendall(request.param)

    serving = threading.Thread(target=answer)
    serving.start()
    yield server.getsockname()[1]
    serving.join()
    server.close()


@pytest.mark.parametrize("address", ["", ":6379", "here:ray", "here:70000", "ray://here"])
def test_what_is_no_address_is_said(address: str) -> None:
    with pytest.raises(StudyError, match=r"is no address of a Ray cluster; give HOST:PORT, 'auto' or 'local'\."):
        require_cluster(address)


def test_nothing_listens(free: int) -> None:
    for address in (f"127.0.0.1:{free}", f"ray://localhost:{free}"):
        with pytest.raises(StudyError, match=rf"no Ray cluster at '{address}' \(Connection refused\); start one with"):
            require_cluster(address)
    with pytest.raises(StudyError, match=r"no Ray cluster at 'no\.such\.host\.invalid:6379' \("):
        require_cluster("no.such.host.invalid:6379")


@pytest.mark.parametrize("listening", [b"SSH-2.0-OpenSSH_9.2", b""], indirect=True)
def test_another_program_listens(listening: int) -> None:
    with pytest.raises(StudyError, match="another program listens there"):
        require_cluster(f"127.0.0.1:{listening}")


@pytest.mark.parametrize("listening", [SETTINGS, None], indirect=True)
def test_what_may_be_a_cluster_passes(listening: int) -> None:
    require_cluster(f"127.0.0.1:{listening}")


def test_the_command_says_so(free: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ray", reason="the extra [cluster] is not installed")
    (tmp_path / "s.toml").write_text(STUDY, encoding="utf-8")
    assert cli.main(["study", "run", str(tmp_path / "s.toml"), "--ray", f"127.0.0.1:{free}"]) == StudyError.exit_code
    assert f"There is no Ray cluster at '127.0.0.1:{free}' (Connection refused)" in capsys.readouterr().err
