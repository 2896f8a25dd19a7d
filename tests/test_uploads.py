"""Uploads: which are found, whose they are, and archives that mean harm."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from judge import archives
from judge.archives import read_archive
from judge.card import read_card
from judge.fingerprint import content_digest
from judge.roster import Participant, RosterError, load_roster
from judge.store.store import Store
from judge.submission import ENTRY, SubmissionError, submission_from
from judge.uploads import Upload, find_uploads, left_alone, read_upload
from tests.permissions import bound_by_permissions, open_folder

SOURCE = b"def gdn_prefill_forward(*inputs):\n    return inputs\n"


def make_zip(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def make_tar(path: Path, members: dict[str, bytes | tarfile.TarInfo]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
            else:
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return path


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


def write(path: Path, content: bytes = SOURCE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def uploads(folder: Path) -> list[Upload]:
    return [read_upload(place) for place in find_uploads(folder)]


def test_every_form_of_upload_is_found_with_its_owner(tmp_path: Path) -> None:
    write(tmp_path / "alone.v2.py")
    write(tmp_path / "folder" / ENTRY)
    write(tmp_path / "nested" / "student" / ENTRY)
    for attempt in ("10", "9", "2026.1"):
        write(tmp_path / "tries" / attempt / ENTRY)
    make_zip(tmp_path / "packed.zip", {"student/" + ENTRY: SOURCE, "student/help.py": b"x = 1\n"})
    make_zip(tmp_path / "tries" / "11.zip", {ENTRY: SOURCE})
    make_tar(tmp_path / "张三.tar.gz", {"any name/student/" + ENTRY: SOURCE})
    make_tar(tmp_path / "one.tgz", {"kernel.py": SOURCE})
    write(tmp_path / "empty" / "readme.txt")
    write(tmp_path / "roster.csv", b"id\n")
    write(tmp_path / ".hidden" / ENTRY)
    write(tmp_path / "__MACOSX" / ENTRY)
    found = [(u.place.participant, u.place.label, not u.problem) for u in uploads(tmp_path)]
    assert found == [
        ("alone.v2", "", True),
        ("empty", "", False),
        ("folder", "", True),
        ("nested", "", True),
        ("one", "", True),
        ("packed", "", True),
        ("tries", "9", True),
        ("tries", "10", True),
        ("tries", "11", True),
        ("tries", "2026.1", True),
        ("张三", "", True),
    ]
    assert left_alone(tmp_path) == [tmp_path / "roster.csv"]
    packed = next(u.submission for u in uploads(tmp_path) if u.place.participant == "packed")
    assert packed.files == {ENTRY: SOURCE, "help.py": b"x = 1\n"}
    assert packed.entry == ENTRY


def test_a_folder_that_is_an_upload_is_its_only_one(tmp_path: Path) -> None:
    write(tmp_path / "zoe" / "student" / ENTRY)
    (upload,) = uploads(tmp_path / "zoe")
    assert (upload.place.participant, upload.problem) == ("zoe", "")


def test_a_folder_without_any_upload_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match="holds no submission"):
        find_uploads(tmp_path)


def test_uploads_that_are_links_are_not_followed(tmp_path: Path) -> None:
    secret = write(tmp_path / "secret" / ENTRY)
    uploads_folder = tmp_path / "uploads"
    (uploads_folder / "mallory").mkdir(parents=True)
    (uploads_folder / "eve").symlink_to(secret.parent)
    (uploads_folder / "mallory" / "1").symlink_to(secret.parent)
    (uploads_folder / "oscar.py").symlink_to(secret)
    found = uploads(uploads_folder)
    assert [u.place.participant for u in found] == ["eve", "mallory", "oscar"]
    assert all("is a link" in u.problem and u.submission is None for u in found)


@pytest.mark.parametrize("target", ["../../secret", "../alice/student", "v2"])
def test_a_student_folder_that_is_a_link_is_refused_wherever_it_leads(
    tmp_path: Path, target: str
) -> None:
    write(tmp_path / "secret" / ENTRY)
    write(tmp_path / "uploads" / "alice" / "student" / ENTRY)
    write(tmp_path / "uploads" / "mallory" / "v2" / ENTRY)
    (tmp_path / "uploads" / "mallory" / "student").symlink_to(target)
    theirs = [u for u in uploads(tmp_path / "uploads") if u.place.participant == "mallory"]
    assert [u.submission for u in theirs] == [None]
    assert theirs[0].problem.endswith("student: is a link; put the folder itself there")


@pytest.mark.parametrize("mode", [0o000, 0o111, 0o444], ids=oct)
@pytest.mark.parametrize(
    ("closed", "refused"),
    [
        ("bob/student", ("bob", "")),
        ("carol", ("carol", "")),
        ("carol/1/student", ("carol", "1")),
        ("dave", ("dave", "")),
        ("carol/3", ("carol", "3")),
    ],
)
def test_an_upload_that_may_not_be_read_is_a_problem_of_its_own(
    closed: str, refused: tuple[str, str], mode: int
) -> None:
    with open_folder() as folder:
        for path in ("alice.py", f"bob/student/{ENTRY}", f"carol/1/student/{ENTRY}"):
            write(folder / path)
        for path in ("carol/2", "carol/3", "dave"):
            write(folder / path / ENTRY)
        (folder / closed).chmod(mode)
        with bound_by_permissions():
            found = {(u.place.participant, u.place.label): u.problem for u in uploads(folder)}
            assert left_alone(folder) == []
    assert "Permission denied" in found.pop(refused)
    others = {("alice", ""), ("bob", ""), ("dave", ""), *(("carol", n) for n in "123")}
    lost = {one for one in others if one[0] == closed}  # behind a folder that is closed as a whole
    assert found == dict.fromkeys(others - lost - {refused}, "")


def test_what_may_not_be_read_is_told_alike_and_without_where_it_lies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with open_folder() as folder:
        write(folder / "up" / "bare.py").chmod(0)
        make_zip(folder / "up" / "packed.zip", {ENTRY: SOURCE}).chmod(0)
        for name, closed in (("folder", "student"), ("inner", "student/kernel.py")):
            write(folder / "up" / name / "student" / ENTRY)
            write(folder / "up" / name / "student" / "kernel.py")
            (folder / "up" / name / closed).chmod(0)
        write(folder / "up" / "leaving" / "student" / ENTRY)
        (folder / "up" / "leaving" / "student" / "x.py").symlink_to("/etc/passwd")
        (folder / "up" / "turning").symlink_to("turning")
        (folder / "way").symlink_to("up")  # what is told then is of another path than the one given
        monkeypatch.chdir(folder)
        for given in (folder / "up", folder / "way", Path("way")):
            with bound_by_permissions():
                told = {u.place.participant: u.problem for u in uploads(given)}
            assert told == {
                "bare": "cannot be read: Permission denied",
                "packed": "cannot be read: Permission denied",
                "folder": "cannot be read: Permission denied",
                "inner": "student/kernel.py: Permission denied",
                "leaving": "student/x.py: links out of the submission; copy the file instead",
                "turning": "is a link; put the upload itself there",
            }


def test_a_name_that_is_not_utf_8_is_refused_and_can_be_kept(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for name in (b"caf\xe9.py", b"zoe/1\xff/" + ENTRY.encode()):
        write(folder / os.fsdecode(name))
    write(folder / "café.py")
    found = uploads(folder)
    assert [(u.place.participant, u.place.label, u.problem) for u in found] == [
        ("café", "", ""),
        ("caf\\xe9", "", "its path is not UTF-8; rename it"),
        ("zoe", "1\\xff", "its path is not UTF-8; rename it"),
    ]
    with Store(tmp_path / "s.sqlite") as store:
        for upload in found:
            store.see(upload, Participant(upload.place.participant), "")
        assert f"{folder}/caf\\xe9.py" in {one.path for one in store.attempts()}


@pytest.mark.parametrize("mode", [0o000, 0o111, 0o444], ids=oct)
def test_uploads_whose_folder_may_not_be_read_are_one_line(mode: int) -> None:
    with open_folder() as folder:
        write(folder / "in" / "alice.py")
        (folder / "in").chmod(mode)
        with bound_by_permissions(), pytest.raises(SubmissionError, match="in: Permission denied"):
            find_uploads(folder / "in")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("../outside.py", "leads out"),
        ("/etc/outside.py", "leads out"),
        ("a/../../outside.py", "leads out"),
        ("a\\..\\..\\outside.py", "leads out"),
        ("C:/outside.py", "leads out"),
        ("n" * 300 + ".py", "too long"),
        ("d/" * 40 + "f.py", "too long"),
    ],
)
def test_paths_out_of_an_archive_are_refused(tmp_path: Path, name: str, problem: str) -> None:
    members = {ENTRY: SOURCE, name: b"x"}
    for path in (make_zip(tmp_path / "a.zip", members), make_tar(tmp_path / "a.tar.gz", members)):
        with pytest.raises(SubmissionError, match=problem):
            read_archive(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.tar.gz", "a.zip"]


@pytest.mark.parametrize(
    "member",
    [
        special("link", tarfile.SYMTYPE, "/etc/passwd"),
        special("hard", tarfile.LNKTYPE, "/etc/passwd"),
        special("device", tarfile.CHRTYPE),
        special("pipe", tarfile.FIFOTYPE),
    ],
    ids=lambda member: member.name,
)
def test_links_and_devices_of_a_tar_are_refused(tmp_path: Path, member: tarfile.TarInfo) -> None:
    path = make_tar(tmp_path / "a.tar.gz", {ENTRY: SOURCE, member.name: member})
    with pytest.raises(SubmissionError, match="holds a link, a device"):
        read_archive(path)


def test_a_link_of_a_zip_is_refused(tmp_path: Path) -> None:
    entry = zipfile.ZipInfo("helper.py")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(ENTRY, SOURCE)
        archive.writestr(entry, "/etc/passwd")
    with pytest.raises(SubmissionError, match="holds a link"):
        read_archive(tmp_path / "a.zip")


def test_archives_that_grow_without_end_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_BYTES", 1 << 20)
    monkeypatch.setattr(archives, "_TAR_OVERHEAD", 1 << 16)
    zeros = b"\0" * (2 << 20)
    make_zip(tmp_path / "a.zip", {ENTRY: SOURCE, "zeros": zeros})
    make_tar(tmp_path / "a.tar.gz", {ENTRY: SOURCE, "zeros": zeros})
    (tmp_path / "b.tar.gz").write_bytes(gzip.compress(b"\0" * (4 << 20)))
    for path in tmp_path.iterdir():
        with pytest.raises(SubmissionError, match="MiB unpacked"):
            read_archive(path)


def test_sizes_that_a_header_denies_are_counted_as_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_BYTES", 1 << 20)
    path = make_zip(tmp_path / "a.zip", {"zeros": b"\0" * (2 << 20)})
    size = (2 << 20).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(size, (9).to_bytes(4, "little")))
    with pytest.raises(SubmissionError):
        read_archive(path)


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_FILES", 3)
    path = make_zip(tmp_path / "a.zip", {f"{n}.py": b"" for n in range(5)})
    with pytest.raises(SubmissionError, match="more than 3 files"):
        read_archive(path)
    monkeypatch.setattr(archives, "_MAX_ENTRIES", 3)
    path = make_tar(
        tmp_path / "a.tgz", {f"d{n}": special(f"d{n}", tarfile.DIRTYPE) for n in "12345"}
    )
    with pytest.raises(SubmissionError, match="more than 3 entries"):
        read_archive(path)


def test_names_that_clash_are_refused(tmp_path: Path) -> None:
    for files in ({"a": b"", "./a": b""}, {"a": b"", "a/b.py": b""}):
        with pytest.raises(SubmissionError, match=r"holds a (twice|as a file and as a folder)"):
            read_archive(make_zip(tmp_path / "a.zip", files))


@pytest.mark.parametrize("suffix", archives.ARCHIVES)
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not really", b"\x1f\x8b\x08 neither"])
def test_damaged_archives_are_problems(tmp_path: Path, suffix: str, content: bytes) -> None:
    (tmp_path / f"mallory{suffix}").write_bytes(content)
    (upload,) = uploads(tmp_path)
    assert upload.place.participant == "mallory"
    assert upload.submission is None
    assert upload.problem


def test_an_archive_without_one_submission_is_a_problem(tmp_path: Path) -> None:
    make_zip(tmp_path / "none.zip", {"a.py": b"", "b.py": b""})
    make_zip(tmp_path / "two.zip", {f"a/{ENTRY}": SOURCE, f"b/{ENTRY}": SOURCE})
    make_zip(tmp_path / "deep.zip", {f"a/b/c/{ENTRY}": SOURCE})
    problems = {u.place.participant: u.problem for u in uploads(tmp_path)}
    assert f"no {ENTRY} at its top" in problems["none"]
    assert f"2 files {ENTRY} at its top" in problems["two"]
    assert f"no {ENTRY} at its top" in problems["deep"]


def test_a_card_gives_a_display_name_and_notes_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path / "a" / "student" / ENTRY)
    write(tmp_path / "a" / "submission.yaml", 'name: "快\\e[31m"\nnotes: first\n'.encode())
    make_zip(tmp_path / "b.zip", {f"x/{ENTRY}": SOURCE, "x/submission.yaml": b"name: B\nid: a\n"})
    first, second = uploads(tmp_path)
    assert (first.card.name, first.card.notes, first.card.problem) == ("快", "first", "")
    assert second.card.name == ""
    assert "unknown key" in second.card.problem
    assert all(list(u.submission.files) == [ENTRY] for u in (first, second))
    assert second.place.participant == "b"


@pytest.mark.parametrize("content", [b"", b"&a [*a]", b"name: [1]", b"\xff", b"[" * 5000, b"- x"])
def test_a_card_that_is_no_card_is_a_problem_in_one_line(content: bytes) -> None:
    card = read_card(content)
    assert card.name == card.notes == ""
    assert card.problem.endswith("nothing of it is used")
    assert "\n" not in card.problem


def test_roster(tmp_path: Path) -> None:
    path = write(
        tmp_path / "r.csv", '\ufeffid,name, group\r\n1,张三,A\r\n2,"Zoe, B",\n,,\n\n'.encode()
    )
    assert load_roster(path) == {
        "1": Participant("1", "张三", "A"),
        "2": Participant("2", "Zoe, B"),
    }
    path.write_text("group,id\nA,1\n")
    assert load_roster(path) == {"1": Participant("1", "", "A")}
    path.write_text("id,mail,group,name,\n1,z@x,A,Zoe,\n")
    assert load_roster(path) == {"1": Participant("1", "Zoe", "A")}
    for text, problem in (
        ("name\nx\n", "r.csv:1: no column id"),
        ("id\na\na\n", "r.csv:3: an id that stands there already"),
        ("id,name\n,Zoe\n", "r.csv:2: no id"),
        ("id,nme,group\n", "r.csv:1: 'nme' is no column of a roster, and there is no name"),
        ("id,name,id\n", "r.csv:1: 'id' stands there twice"),
        ("id,name,group\n\n1,Zoe\n", "r.csv:3: 2 fields for the 3 columns id,name,group"),
        ("id,name\n1,Zoe,A\n", "r.csv:2: 3 fields for the 2 columns"),
        ('id,name\n1,"Zoe\n2,Max\n', "r.csv:2: unexpected end of data; look at its quotes"),
        ('id,name\n1,"Zoe\n2,"Max\n', "r.csv:2: unexpected end of data; look at its quotes"),
    ):
        path.write_text(text)
        with pytest.raises(RosterError, match=problem):
            load_roster(path)
    path.write_bytes(b"id\n\xff\n")
    with pytest.raises(RosterError, match="not UTF-8"):
        load_roster(path)


def digest(source: str, **others: bytes) -> str:
    return content_digest(submission_from("s", "s", ENTRY, {ENTRY: source.encode(), **others}))


def test_comments_and_blank_lines_are_no_change() -> None:
    plain = "def f(x):\n    return x + 1\n"
    same = "# new\n\ndef f(x):  # why\n\n        # here\n        return x + 1\n\n"
    assert digest(plain) == digest(same)


@pytest.mark.parametrize(
    "changed",
    [
        "def f(x):\n    return x + 2\n",
        "def f(x):\n    return x\n    + 1\n",
        "def f(x):\n    'doc'\n    return x + 1\n",
        "def f(x):\n    return '# x + 1'\n",
        "def f(x):\n    pass\nreturn x + 1\n",
        "def f(x:\n",
    ],
)
def test_everything_else_is_one(changed: str) -> None:
    assert digest(changed) != digest("def f(x):\n    return x + 1\n")


def test_files_and_their_names_belong_to_the_content() -> None:
    source = "x = 1\n"
    digests = [digest(source), digest(source, data=b"# a"), digest(source, data=b"# b")]
    digests += [digest(source, **{"a.py": b"y"}), digest(source, **{"b.py": b"y"})]
    assert len(set(digests)) == len(digests)
