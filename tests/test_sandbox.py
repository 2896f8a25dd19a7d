"""Hostile submissions in each kind of sandbox that this machine allows, and what they get."""

from __future__ import annotations

import itertools
import json
import os
import re
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from judge import caches
from judge.cli import main
from judge.record import from_json, to_json
from judge.sandbox import kinds, tree, view
from judge.sandbox.accounts import FIRST_UID, LAST_UID, take_account
from judge.sandbox.kinds import Kind, Sandbox, SandboxError, choose_sandbox
from judge.sandbox.watch import ResourceLimits, folder_size
from judge.verdict import Verdict
from tests.make_record import make_record
from tests.trial import GIB, ROOT, VERDICT_CASES, put_on_trial, verdict_cases, write_submission

PROBES = Path(__file__).with_name("probes.py")
FORWARD = "def gdn_prefill_forward(q, k, v, g_cumsum, beta, A, initial_state=None):\n"
MIB = 2**20
NO_PROCESS = 2**22 + 1  # above the largest that Linux gives
_daemon_seconds = itertools.count(900_000 + os.getpid())

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root has other accounts to give")


def sandbox_of(kind: Kind) -> Sandbox:
    """A sandbox of this kind; skips the test where the machine allows none."""
    best = choose_sandbox("auto")
    if kind is Kind.BUBBLEWRAP:
        if best.kind is not kind:
            pytest.skip(f"no bubblewrap here: {best.reason}")
        return best
    if kind is Kind.USER:
        without = kinds._without_bubblewrap("not wanted in this test")
        if without.kind is not kind:
            pytest.skip(f"no account of its own here: {without.reason}")
        return without
    return Sandbox(Kind.NONE, reason="not wanted in this test")


@pytest.fixture
def listeners() -> Iterator[tuple[int, str]]:
    """A TCP port and the name of an abstract socket that accept connections."""
    name = f"gdn-judge-test-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind("\0" + name)
        abstract.listen()
        yield tcp.getsockname()[1], name


@pytest.mark.parametrize("kind", list(Kind))
def test_hostile_submission_finds_as_little_as_the_sandbox_promises(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listeners: tuple[int, str]
) -> None:
    sandbox = sandbox_of(kind)
    cache = tmp_path / "judge-cache"
    monkeypatch.setenv(caches.CACHE_VARIABLE, str(cache))
    view._layers.cache_clear()
    caches.check_cache_root()
    for folder in (cache / "judge" / "x", caches.submission_cache("ab" * 32), tmp_path / "other"):
        folder.mkdir(parents=True)
        (folder / "secret").write_text("secret")
    (caches.log_folder() / "old.log").write_text("secret")
    secrets = {
        "PROBE_API_KEY": "1",
        "PROBE_AWS_ACCESS_KEY_ID": "1",
        "PROBE_INDEX": "https://user:word@host/simple",
        "PROBE_AUTH": "1",
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    closed = [cache / "judge" / "x", cache / "submissions", caches.log_folder() / "old.log"]
    others = [tmp_path / "other" / "secret", ROOT / "cases" / "hidden.yaml", ROOT / "tests"]
    others += [ROOT / "docs" / "results", ROOT / "submissions", Path("/etc/hostname")]
    seconds = next(_daemon_seconds)
    shared = [Path(place, f"gdn-judge-test-{seconds}") for place in ("/tmp", "/dev/shm")]
    targets = {
        "shared": [str(path) for path in shared],
        "read": [str(path) for path in closed + others],
        "write": [
            str(folder / "hostile")
            for folder in (ROOT / "judge", ROOT, Path(sys.prefix), Path("/usr"), Path("/etc"))
        ]
        + [str(cache / "hostile"), "/hostile"],
        "port": listeners[0],
        "abstract": listeners[1],
        "judge": os.getpid(),
        "daemon_seconds": seconds,
    }
    if kind is Kind.NONE:  # nothing keeps the test's own files and process from harm there
        targets |= {"write": [], "judge": NO_PROCESS}
    if kind is Kind.BUBBLEWRAP and os.getpid() < 1000:  # could be a number of the child's own too
        targets["judge"] = NO_PROCESS
    path = write_submission(
        tmp_path / "s",
        "from probes import report\n"
        "done = []\n" + FORWARD + "    if first_case(q) and not done:\n"
        f"        report({targets!r})\n"
        "        done.append(1)\n"
        "    return right(q, k, v, g_cumsum, beta, A, initial_state)\n",
    )
    (path / "probes.py").write_text(PROBES.read_text())

    results, _, log = put_on_trial(path, tmp_path, sandbox=sandbox)

    assert [result.verdict for result in results] == [Verdict.PASS, Verdict.PASS]
    found = _findings(log.path)
    assert not _runs(f"sleep\0{seconds}\0")
    assert found["daemon"] is True
    assert found["stdin"] == ""
    assert found["secrets"] == []
    assert found["home"] is True
    assert found["capabilities"] == 0
    assert found["no_new_privileges"] == 1
    assert found["limits"] == [ResourceLimits().cpu_s, 0]
    assert 100 < found["open_files"] < ResourceLimits().open_files
    assert found["file"] == "OSError"
    assert found["write"] == []
    assert found["shared"] == [True, True]
    left = [path for path in shared if path.exists()]
    for path in left:
        path.unlink()
    assert left == (shared if kind is Kind.NONE else [])
    if sandbox.own_account:
        assert FIRST_UID <= found["uid"] <= LAST_UID
        assert found["root"] == "PermissionError"
    if kind is Kind.USER:
        assert found["kill"] == "PermissionError"
        assert found["ptrace"] == -1
        assert not set(found["read"]) & {str(path) for path in closed}
    if kind is Kind.BUBBLEWRAP:
        assert found["read"] == []
        assert found["tcp"] is False
        assert found["abstract"] is False
        assert found["sees_judge"] is False
        assert found["kill"] == "ProcessLookupError"
        assert found["ptrace"] == -1
        assert found["gpus"] == []


TOO_MUCH = {
    "flood_folder()": r"first call: wrote 0\.\d GiB of files, more than the limit of 0\.1 GiB",
    "bomb()": r"first call: ran \d+ processes and threads, more than 100",
    "grandchild_hog()": r"first call: took \d\.\d GiB of memory, more than the limit of 1\.5 GiB",
}
TOO_MUCH_HELPERS = """
import os, subprocess, sys, time

def flood_folder():
    os.makedirs(os.environ["TILELANG_CACHE_DIR"], exist_ok=True)
    with open(os.environ["TILELANG_CACHE_DIR"] + "/kept", "w") as file:
        file.write("kept")
    for number in range(40):
        with open(f"flood{number}", "wb") as file:
            file.write(os.urandom(1 << 20) * 4)
    time.sleep(60)

def bomb():
    # asleep: more that fork without end starve this test's neighbours on two cores for minutes
    for _ in range(150):
        try:
            if os.fork() == 0:
                os.setsid()
                time.sleep(60)
                os._exit(0)
        except OSError:
            pass
    time.sleep(60)

def grandchild_hog():
    code = "import os, subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    hog = "import time; x = bytearray(b'1') * (1600 << 20); time.sleep(60)"
    subprocess.run([sys.executable, "-c", code, hog], start_new_session=True)
"""


def test_child_that_takes_too_much_is_ended_and_the_next_case_is_graded(tmp_path: Path) -> None:
    *bad, right = [
        replace(verdict_cases()[0], name=f"case{number}", tokens=65 + number)
        for number in range(len(TOO_MUCH) + 1)
    ]
    branches = "".join(
        f"    if q.shape[1] == {case.tokens}:\n        {line}\n"
        for case, line in zip(bad, TOO_MUCH, strict=True)
    )
    say = (
        "    kept = os.environ['TILELANG_CACHE_DIR'] + '/kept'\n"
        "    print('KEPT', os.path.exists(kept) and open(kept).read(), flush=True)\n"
    )
    body = TOO_MUCH_HELPERS + FORWARD + branches + say
    body += "    return right(q, k, v, g_cumsum, beta, A, initial_state)\n"
    path = write_submission(tmp_path / "s", body)
    limits = ResourceLimits(tasks=100, folder_bytes=100 * MIB)
    results, _, log = put_on_trial(
        path,
        tmp_path,
        [*bad, right],
        memory_limit=3 * GIB // 2,
        child_limits=limits,
    )
    for result, pattern in zip(results, TOO_MUCH.values(), strict=False):
        assert result.verdict is Verdict.CRASH
        assert re.fullmatch(pattern, result.detail), result.detail
    assert results[-1].verdict is Verdict.PASS
    # what the first child left in its compile cache is there for the last one
    assert "KEPT kept" in log.path.read_text()


def test_required_refuses_where_bubblewrap_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kinds.BWRAP_VARIABLE, "/no/such/bwrap")
    done = CliRunner().invoke(main, ["--sandbox", "required", "--case", "short_tail_state"])
    assert done.exit_code == 2
    assert done.output == (
        "Error: --sandbox required: no program /no/such/bwrap; install bubblewrap "
        "(apt install bubblewrap) or set GDN_JUDGE_BWRAP to its path\n"
    )


def test_bubblewrap_that_makes_no_namespaces_counts_as_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = tmp_path / "bwrap"
    refusing.write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1"
    )
    refusing.chmod(0o755)
    monkeypatch.setenv(kinds.BWRAP_VARIABLE, str(refusing))
    sandbox = choose_sandbox("auto")
    assert sandbox.kind is not Kind.BUBBLEWRAP
    assert "(bwrap: No permissions to create new namespace)" in sandbox.reason
    assert sandbox.note.startswith(
        f"submission not sandboxed by bubblewrap (sandbox: {sandbox.kind})"
    )
    with pytest.raises(SandboxError, match="No permissions"):
        choose_sandbox("required")


def test_required_is_met_where_bubblewrap_works() -> None:
    sandbox_of(Kind.BUBBLEWRAP)
    assert choose_sandbox("required") == choose_sandbox("auto")
    assert choose_sandbox("required").note == "" or os.geteuid() == 0


def test_profiler_that_follows_the_child_gets_no_sandbox() -> None:
    assert choose_sandbox("auto", followed_by_profiler=True).kind is Kind.NONE
    with pytest.raises(SandboxError, match="a profiler"):
        choose_sandbox("required", followed_by_profiler=True)


def test_record_and_stderr_say_that_there_is_no_sandbox() -> None:
    done = CliRunner().invoke(
        main,
        [
            *("--sandbox", "off", "--device", "cpu", "--cases", str(VERDICT_CASES)),
            *("--baseline", "none", "--output-format", "json"),
        ],
    )
    record = from_json(done.stdout)
    note = "submission not sandboxed by bubblewrap (sandbox: none): --sandbox off"
    assert record.protocol.sandbox == "none"
    assert record.notes[0] == note
    assert note in done.stderr


def test_record_of_the_first_schema_version_still_loads() -> None:
    data = json.loads(to_json(make_record([], [])))
    data["schema_version"] = 1
    del data["protocol"]["sandbox"]
    assert from_json(json.dumps(data)).protocol.sandbox == ""
    data["schema_version"] = 99
    with pytest.raises(ValueError, match="schema version 99"):
        from_json(json.dumps(data))


def test_hidden_folder_inside_a_shown_one_is_covered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = tmp_path / "shown"
    (shown / "home").mkdir(parents=True)
    (shown / "cache").mkdir()
    (tmp_path / "link").symlink_to("shown")
    monkeypatch.setenv(caches.CACHE_VARIABLE, str(shown / "cache"))
    monkeypatch.setenv(view.READABLE_VARIABLE, f"{tmp_path / 'link'}:{shown / 'home'}:/")
    layers = view._layers.__wrapped__(shown / "home")
    show = layers.index(str(shown))
    assert layers[show - 1 : show + 2] == ["--ro-bind", str(shown), str(shown)]
    for hidden in (shown / "cache", shown / "home"):
        hide = layers.index(str(hidden))
        assert layers[hide - 1] == "--tmpfs"
        assert hide > show
    link = layers.index(str(tmp_path / "link"))
    assert layers[link - 2 : link] == ["--symlink", "shown"]
    assert "/" not in layers
    never = {str(ROOT), str(ROOT / "tests"), str(ROOT / "cases"), "/tmp"}
    assert not any(
        path in never and kind == "--ro-bind" for kind, path in itertools.pairwise(layers)
    )


def test_compiler_that_a_variable_names_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "gcc-15" / "bin" / "g++"
    compiler.parent.mkdir(parents=True)
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", f"ccache {compiler} -m64")
    layers = view._layers.__wrapped__(tmp_path / "home")
    assert str(compiler.parents[1]) in layers


@root_only
def test_live_children_never_share_an_account() -> None:
    first, second = take_account(), take_account()
    try:
        assert first.uid != second.uid
    finally:
        second.release()
        first.release()
    again = take_account()
    again.release()
    assert again.uid == first.uid


def test_cache_keeps_regular_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(caches.CACHE_VARIABLE, str(tmp_path / "cache"))
    left = tmp_path / "left"
    (left / "tilelang" / "tmp").mkdir(parents=True)
    (left / "tilelang" / "kernel.so").write_bytes(b"good")
    (left / "tilelang" / "tmp" / "half").write_bytes(b"half")
    (left / "tilelang" / "out").symlink_to("/etc/passwd")
    (left / "tilelang" / "folder").symlink_to("/etc")
    os.mkfifo(left / "tilelang" / "pipe")
    caches.save_submission_cache("cd" * 32, left, None)
    copy = tmp_path / "copy"
    caches.load_submission_cache("cd" * 32, copy)
    assert [path.relative_to(copy).as_posix() for path in sorted(copy.rglob("*"))] == [
        "tilelang",
        "tilelang/kernel.so",
    ]
    caches.load_submission_cache("ef" * 32, tmp_path / "another")
    assert list((tmp_path / "another").iterdir()) == []


@root_only
def test_cache_leaves_files_of_other_accounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(caches.CACHE_VARIABLE, str(tmp_path / "cache"))
    left = tmp_path / "left"
    left.mkdir()
    for name, uid in (("own", FIRST_UID), ("linked", 12345)):
        (left / name).write_text(name)
        os.chown(left / name, uid, uid)
    caches.save_submission_cache("cd" * 32, left, FIRST_UID)
    kept = caches.submission_cache("cd" * 32)
    assert [path.name for path in kept.iterdir()] == ["own"]


def test_folder_nested_beyond_any_path_is_counted_and_removed(tmp_path: Path) -> None:
    nest = tmp_path / "nest"
    nest.mkdir()
    here = Path.cwd()
    os.chdir(nest)
    try:
        for _ in range(2500):
            Path("d").mkdir()
            os.chdir("d")
    finally:
        os.chdir(here)
    assert folder_size(nest, 10**6)[1] > 1000
    assert folder_size(nest, 10)[1] == 11
    tree.remove(nest)
    assert not nest.exists()


def _findings(log: Path) -> dict:
    for line in log.read_text().splitlines():
        _, marker, text = line.partition("FINDINGS ")
        if marker:
            return json.loads(text)
    raise AssertionError(log.read_text())


def _runs(command: str) -> bool:
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_text() == command:
                return True
        except OSError:
            continue
    return False
