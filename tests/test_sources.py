"""A folder that uploads arrive in while it is watched."""

from __future__ import annotations

from pathlib import Path

import pytest

from judge.sources import Listed, Watched
from judge.submission import SubmissionError
from judge.uploads import Place
from tests.permissions import bound_by_permissions, open_folder


def test_an_upload_is_handed_out_once_it_has_come_to_rest_and_again_when_changed(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    source = Watched(folder, period_s=0.0)
    assert source.take() is None  # an empty folder is no mistake
    path = folder / "a.py"
    place = Place(path, "a", "")
    path.write_text("x = 1\n")
    assert source.take() is None
    with path.open("a") as file:
        file.write("y = 1\n")
    assert source.take() is None  # it grew since the last look
    assert source.take() == place
    assert [source.take(), source.take()] == [None, None]
    path.write_text("x = 2\n")
    assert source.take() is None
    assert source.take() == place
    inner = folder / "bob" / "1" / "student" / "tilelang_fwd.py"
    inner.parent.mkdir(parents=True)
    inner.write_text("")
    assert source.take() is None
    (inner.parent / "helper.py").write_text("z = 1\n")  # as good as a change of the folder
    assert source.take() is None
    assert source.take() == Place(folder / "bob" / "1", "bob", "1")
    assert (source.total, source.ended()) == (3, False)


def test_looks_are_a_period_apart(tmp_path: Path) -> None:
    source = Watched(tmp_path, period_s=3600.0)
    assert source.take() is None
    (tmp_path / "a.py").write_text("x = 1\n")
    assert [source.take() for _ in range(3)] == [None] * 3
    assert source.total == 0


def test_a_folder_that_may_not_be_read_is_told_of_once_until_it_may() -> None:
    with open_folder() as folder:
        (folder / "in").mkdir()
        (folder / "in" / "a.py").write_text("x = 1\n")
        source = Watched(folder / "in", period_s=0.0)
        for _ in range(2):
            (folder / "in").chmod(0o111)
            with bound_by_permissions():
                with pytest.raises(SubmissionError, match="Permission denied"):
                    source.take()
                assert [source.take(), source.take()] == [None, None]
            (folder / "in").chmod(0o755)
            source.take()
        assert source.total == 1


def test_an_upload_that_may_not_be_read_is_handed_out_and_again_once_it_may() -> None:
    with open_folder() as folder:
        (folder / "bob").mkdir()
        (folder / "bob" / "tilelang_fwd.py").write_text("")
        (folder / "bob").chmod(0)
        source = Watched(folder, period_s=0.0)
        with bound_by_permissions():
            taken = [source.take() for _ in range(3)]
        (folder / "bob").chmod(0o755)
        with bound_by_permissions():
            taken += [source.take() for _ in range(3)]
    bob = Place(folder / "bob", "bob", "")
    assert taken == [None, bob, None, None, bob, None]


def test_a_list_ends() -> None:
    places = [Place(Path("a.py"), "a", ""), Place(Path("b.py"), "b", "")]
    source = Listed(places)
    assert (source.total, source.ended()) == (2, False)
    assert [source.take(), source.take(), source.take()] == [*places, None]
    assert (source.total, source.ended()) == (2, True)
