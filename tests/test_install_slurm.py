"""scripts/install_slurm.py without Slurm: whose folders it leaves alone, and commands that hang."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scripts import install_slurm
from scripts.install_slurm import Files, cancel_jobs, configure, node_state, stop


@pytest.fixture(autouse=True)
def no_daemons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install_slurm, "running", lambda files, daemon: None)


def test_a_folder_of_somebody_else_is_neither_written_nor_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text("ClusterName=other\n")
    for act in (lambda: configure(Files(tmp_path), 0), lambda: stop(Files(tmp_path))):
        with pytest.raises(SystemExit) as ended:
            act()
        assert ended.value.code == 2
        told = capsys.readouterr()
        assert (told.out, told.err.count("\n")) == ("", 1)
        assert told.err.startswith(f"{tmp_path} holds no cluster of this script; name ")
    assert [*tmp_path.iterdir()] == [conf]
    assert conf.read_text() == "ClusterName=other\n"


def test_where_nothing_is_there_nothing_is_to_stop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stop(Files(tmp_path / "slurm"))
    assert capsys.readouterr().out == f"nothing to stop: {tmp_path / 'slurm'} is not there\n"


@pytest.mark.parametrize("there", [False, True])
def test_its_own_folder_is_written_again_and_removed(tmp_path: Path, there: bool) -> None:
    folder = tmp_path / "slurm"
    if there:
        folder.mkdir()
    configure(Files(folder), 0)
    key = Files(folder).key.read_bytes()
    configure(Files(folder), 0)
    assert Files(folder).key.read_bytes() == key
    stop(Files(folder))
    assert not folder.exists()


def test_commands_that_hang_are_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def hang(command: tuple[str, ...], *, timeout: float, **_: object) -> None:
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(subprocess, "run", hang)
    assert node_state(Files(tmp_path)) == ""
    cancel_jobs(Files(tmp_path))
    assert capsys.readouterr().err == "scancel does not answer: jobs may go on\n"
