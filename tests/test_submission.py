"""Finding submissions, their isolation from each other, and the rules their source keeps."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from judge.child.protocol import MAX_MESSAGE_BYTES
from judge.rules import judge_loaded, scan_source
from judge.submission import (
    MAX_BYTES,
    MAX_SOURCE_BYTES,
    SubmissionError,
    find_submission,
    submission_from,
)
from judge.verdict import Rules, Verdict
from tests.trial import put_on_trial, verdict_cases, write_submission

FORWARD = (
    "def gdn_prefill_forward(q, k, v, g_cumsum, beta, A, initial_state=None):\n"
    "    return right(q, k, v, g_cumsum, beta, A, initial_state)\n"
)
LAB_STARTER = """
import torch

from references.torch_gdr import torch_gdn_prefill_forward


def gdn_prefill_forward(q, k, v, g_cumsum, beta, A, initial_state=None):
    return torch_gdn_prefill_forward(
        q, k, v, g_cumsum, beta, A, initial_state, student_interface=True
    )
"""


def test_folder_file_and_student_folder_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "alice" / "student"
    folder.mkdir(parents=True)
    (folder / "tilelang_fwd.py").write_text("x = 1\n")
    (folder / "helper.py").write_text("y = 2\n")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "helper.pyc").write_bytes(b"no")
    (folder / ".hidden").write_text("no")
    for path in (tmp_path / "alice", folder, folder / "tilelang_fwd.py"):
        found = find_submission(path)
        assert found.name == "alice"
        assert found.files == {"tilelang_fwd.py": b"x = 1\n", "helper.py": b"y = 2\n"}
    alone = tmp_path / "fast.py"
    alone.write_text("z = 3\n")
    assert find_submission(alone).files == {"fast.py": b"z = 3\n"}
    assert find_submission(alone).entry == "fast.py"


def test_digest_follows_content_and_names(tmp_path: Path) -> None:
    one = submission_from("a", "p", "e.py", {"e.py": b"x", "f.py": b"y"})
    same = submission_from("b", "q", "e.py", {"f.py": b"y", "e.py": b"x"})
    moved = submission_from("a", "p", "e.py", {"e.py": b"xy", "f.py": b""})
    renamed = submission_from("a", "p", "e.py", {"e.py": b"x", "g.py": b"y"})
    assert one.digest == same.digest
    assert len({one.digest, moved.digest, renamed.digest}) == 3


def test_wrong_paths_are_one_line_that_says_what_would_be_right(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "kernel.cu").write_text("")
    (tmp_path / "tilelang_fwd.py").mkdir()
    for folder in ("class/b/student", "class/a", "class/no_submission"):
        (tmp_path / folder).mkdir(parents=True)
        if "no" not in folder:
            (tmp_path / folder / "tilelang_fwd.py").write_text("")
    for name, message in (
        ("nothing", "nothing: no such file or folder"),
        ("empty", "empty: holds neither tilelang_fwd.py nor student/tilelang_fwd.py; add the file"),
        ("tilelang_fwd.py", "tilelang_fwd.py: a folder that holds neither tilelang_fwd.py nor"),
        ("class", "student/tilelang_fwd.py; below it, use one of a, b"),
        (
            "kernel.cu",
            "kernel.cu: not a .py file; give a .py file or a folder with tilelang_fwd.py",
        ),
    ):
        with pytest.raises(SubmissionError) as caught:
            find_submission(tmp_path / name)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


def test_links_out_and_huge_folders_are_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("expected results")
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "tilelang_fwd.py").write_text("")
    (folder / "link.txt").symlink_to(secret)
    with pytest.raises(SubmissionError, match="links out of the submission"):
        find_submission(folder)
    (folder / "link.txt").unlink()
    with (folder / "big.bin").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(SubmissionError, match="64 MiB"):
        find_submission(folder)
    (folder / "big.bin").unlink()
    (folder / "table.py").write_text("a\n" * MAX_SOURCE_BYTES)
    with pytest.raises(SubmissionError, match="256 KiB in a file"):
        find_submission(folder)


def test_environments_are_passed_over_and_any_file_name_is_taken(tmp_path: Path) -> None:
    (tmp_path / "tilelang_fwd.py").write_text("")
    for place in ("venv/pyvenv.cfg", "venv/lib.py", ".git/config", "__pycache__/x.py"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text("")
    odd = os.fsdecode(b"data\xff.bin")
    (tmp_path / odd).write_bytes(b"1")
    found = find_submission(tmp_path)
    assert set(found.files) == {"tilelang_fwd.py", odd}
    assert len(found.digest) == 64
    (tmp_path / "v1.2.py").write_text("")
    with pytest.raises(SubmissionError, match="not a module's name"):
        find_submission(tmp_path / "v1.2.py")


@pytest.mark.parametrize(
    "line",
    ["from helper import right", "from student.helper import right", "from .helper import right"],
)
def test_helpers_import_as_participants_write_them(tmp_path: Path, line: str) -> None:
    path = write_submission(tmp_path / "alice" / "student", "")
    (path / "helper.py").write_text("from right import gdn_prefill_forward as right\n")
    (path / "tilelang_fwd.py").write_text(f"{line}\n{FORWARD}")
    (result,), _, _ = put_on_trial(tmp_path / "alice", tmp_path, verdict_cases()[:1])
    assert (result.verdict, result.detail) == (Verdict.PASS, "")


def test_helpers_of_the_same_name_never_meet_and_may_be_named_like_the_judge(
    tmp_path: Path,
) -> None:
    verdicts = {}
    for name, factor in (("one", "1"), ("two", "2")):
        body = f"from judge import factor\nimport reference\n{FORWARD}".replace(
            "    return right(q", "    return right(q * factor"
        )
        path = write_submission(tmp_path / name, body)
        (path / "judge.py").write_text(f"factor = {factor}\n")
        (path / "reference.py").write_text("")
        (result,), session, _ = put_on_trial(path, tmp_path, verdict_cases()[:1])
        verdicts[name] = result.verdict
        assert session.rules[0] is Rules.NO_TILELANG
    assert verdicts == {"one": Verdict.PASS, "two": Verdict.WRONG}


def test_judge_and_reference_are_out_of_a_submission_s_reach(tmp_path: Path) -> None:
    for module in ("judge.cli", "reference.chunked"):
        (result, _), _, _ = put_on_trial(
            write_submission(tmp_path / module, f"import {module}\n{FORWARD}"), tmp_path
        )
        assert result.verdict is Verdict.IMPORT_ERROR


def test_the_lab_s_starter_runs_and_calls_the_reference(tmp_path: Path) -> None:
    path = tmp_path / "student"
    path.mkdir()
    (path / "tilelang_fwd.py").write_text(LAB_STARTER)
    results, session, _ = put_on_trial(path, tmp_path)
    assert [result.verdict for result in results] == [Verdict.PASS, Verdict.PASS]
    assert session.rules == (
        Rules.FORBIDDEN_IMPORT,
        "tilelang_fwd.py:4 imports references.torch_gdr",
    )


@pytest.mark.parametrize(
    ("source", "rules", "detail"),
    [
        ("import tilelang", Rules.OK, ""),
        ("def f():\n    from tilelang import language", Rules.OK, ""),
        ("import torch", Rules.NO_TILELANG, "no file imports tilelang"),
        ("import tilelang, fla.ops", Rules.FORBIDDEN_IMPORT, "s.py:1 imports fla.ops"),
        (
            "import tilelang\ndef f():\n    import flash_qla",
            Rules.FORBIDDEN_IMPORT,
            "s.py:3 imports flash_qla",
        ),
        (
            "import importlib\nimportlib.import_module('flashinfer.gdn')",
            Rules.FORBIDDEN_IMPORT,
            "s.py:2 imports flashinfer.gdn",
        ),
        ("__import__('reference')", Rules.FORBIDDEN_IMPORT, "s.py:1 imports reference"),
        ("import tilelang\nfrom .reference import x", Rules.OK, ""),
        ("flame = 'fla'\nimport tilelang", Rules.OK, ""),
        ("not python (", Rules.NO_TILELANG, "no file imports tilelang"),
    ],
)
def test_rules_read_from_the_source(source: str, rules: Rules, detail: str) -> None:
    assert scan_source(submission_from("s", "s.py", "s.py", {"s.py": source.encode()})) == (
        rules,
        detail,
    )


def test_rules_add_what_was_seen_while_it_ran() -> None:
    ok = (Rules.OK, "")
    assert judge_loaded(ok, [], 1, on_cuda=True) == ok
    assert judge_loaded(ok, [], 0, on_cuda=False) == ok
    assert judge_loaded(ok, [], 0, on_cuda=True)[0] is Rules.NO_TILELANG
    assert judge_loaded(ok, ["fla"], 1, on_cuda=True) == (
        Rules.FORBIDDEN_IMPORT,
        "loaded fla while it ran",
    )
    assert judge_loaded(ok, ["fla.t4321"], 1, on_cuda=True) == ok  # no module that a child can name
    scanned = (Rules.FORBIDDEN_IMPORT, "s.py:1 imports fla")
    assert judge_loaded(scanned, [], 0, on_cuda=True) == scanned


def test_an_endless_error_text_still_fits_a_message(tmp_path: Path) -> None:
    body = f"def gdn_prefill_forward(*_):\n    raise ValueError('x' * {4 * MAX_MESSAGE_BYTES})\n"
    (result,), _, _ = put_on_trial(
        write_submission(tmp_path / "s", body), tmp_path, verdict_cases()[:1]
    )
    assert result.verdict is Verdict.CRASH
    assert result.detail.startswith("ValueError: xxx")
    assert len(result.detail) <= 300
