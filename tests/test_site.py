"""The static site: who stands where, what nobody may see there, and whether it stands by itself."""

from __future__ import annotations

import os
import re
import string
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from click.testing import CliRunner, Result

from judge.cli import main
from judge.leaderboard import store_boards
from judge.roster import Participant
from judge.site.build import private_folder, write_site
from judge.site.names import file_name, secret_name
from judge.site.words import _WORDS, LANGUAGES, Words
from judge.store.store import Store
from tests.make_record import make_case, make_record, make_result, make_suite
from tests.site_pages import CASES, HOSTILE, HOSTILE_ID, SECRETS, add, class_record, fill, read

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with pages to hand out beside it, written once."""
    folder = tmp_path_factory.mktemp("site")
    fill(folder / "store.sqlite")
    with Store(folder / "store.sqlite") as store:
        write_site(store, folder / "site", None, False, private=True)
    return folder / "site"


def command(store: Path, *more: str) -> Result:
    return CliRunner().invoke(main, ["leaderboard", "--store", str(store), *more])


def pages(site: Path) -> list[Path]:
    return [*site.rglob("*.html"), *private_folder(site).rglob("*.html")]


def every(site: Path) -> list[Path]:
    return [path for folder in (site, private_folder(site)) for path in folder.rglob("*")]


def of(site: Path, participant: str, board: int = 2, language: str = "en") -> Path:
    return site / language / str(board) / f"{file_name(participant)}.html"


def test_rows_stand_in_the_order_of_their_rank(site: Path) -> None:
    # the board of the newest result is the first one, "other" here; the class is on the second
    (head, *rows) = read(site / "en" / "board-2.html").tables[0]
    assert head[:3] == ["Rank", "Name", "Total"]
    # 100 + 20 (p - 1) beyond t100 in the public suite, which weighs 0.6; 100 in the hidden one
    assert [row[:3] for row in rows] == [
        ["1", "王小明", "106.00"],
        ["2", HOSTILE, "103.60"],
        ["3", "Zoë", "102.40"],
        ["4", "Tom", "88.00"],
        ["5", "Max", "0.00"],
        ["–", "Ivy", "–"],
        ["–", "Ana", "110.80"],
    ]
    (_, *others) = read(site / "en" / "index.html").tables[0]
    assert [row[:2] for row in others] == [["1", "Eve"], ["–", "Ivy"]]  # refused: on both
    assert "never compare" in read(site / "en" / "index.html").text
    assert "不能互相比较" in read(site / "zh" / "index.html").text


def test_failed_cases_show_their_verdict_and_decisions_their_reason(site: Path) -> None:
    (head, *rows) = read(site / "en" / "board-2.html").tables[0]
    row = {row[1]: dict(zip(head, row, strict=True)) for row in rows}
    assert row["Max"][CASES[0].name] == "CRASH"
    assert row["Max"]["h1"] == "WRONG"
    assert row["Max"]["correctness, passed"] == "0/1 WRONG"
    assert row["王小明"][CASES[0].name] == "110"
    assert row["Ana"]["Remark"] == "void: copied <b>"
    assert row["Tom"]["Remark"] == "override: device fault"
    refused = read(site / "en" / "index.html").tables[0][-1]
    assert refused[-1] == "refused: holds a link"
    assert "Decision by an assistant" in read(of(site, "void")).text
    assert "Decision by an assistant" not in read(of(site, "refused", board=1)).text


def test_a_submission_has_its_times_history_kernels_and_log(site: Path) -> None:
    page = read(of(site, "one"))
    cases, history, kernels = page.tables
    assert cases[1][:5] == [CASES[0].name, "PASS", "110.00", "0.2307", "0.2293 – 0.2335"]
    assert cases[-1][:5] == ["h1", "PASS", "100.00", "–", "–"]
    assert [row[:2] for row in history[1:]] == [["try 1", "101.20"], ["try 2", "106.00"]]
    assert "counts" in history[2][-1]
    assert "counts" not in history[1][-1]
    assert [row[:5] for row in kernels[1:]] == [
        ["shown_kernel", "256", "168", "20", "99328 / 232448"]
    ]
    labels = [svg["aria-label"] for svg in page.all("svg")]
    assert len(labels) == 2 * len(CASES) + 1
    place = f"{CASES[0].name}: median 0.2307 ms; t100 0.346, t60 0.574, floor 0.06921"
    assert place in labels
    assert ">floor 0.06921</text>" in of(site, "one").read_text()
    assert ">下限 0.06921</text>" in of(site, "one", language="zh").read_text()
    assert "first line" in page.text
    assert "remembered" not in page.text


def test_a_case_says_who_stands_how(site: Path) -> None:
    page = read(site / "en" / "2" / f"case-{file_name(CASES[0].name)}.html")
    assert page.tables[0][1] == ["1", "Ana", "118.00", "0.1821", "PASS"]
    assert page.tables[0][-1] == ["–", "Max", "0.00", "–", "CRASH"]
    hidden = read(site / "en" / "2" / f"case-{file_name('h1')}.html")
    assert hidden.tables[0][0] == ["Rank", "Name", "Score", "Verdict"]
    assert hidden.tables[0][-1] == ["–", "Max", "0.00", "WRONG"]
    untimed = read(site / "en" / "2" / f"case-{file_name('one_token')}.html")
    assert "5 of 6 passed" in untimed.text
    assert "Max" in untimed.text
    assert "Zoë" not in untimed.text


def test_nothing_of_a_hidden_case_is_anywhere(site: Path) -> None:
    assert len(every(site)) > 40
    for path in every(site):
        assert not any(secret in str(path) for secret in SECRETS)
        if path.is_file():
            content = path.read_bytes()
            assert not [s for s in SECRETS if s.encode() in content], path
    assert "hidden_only_kernel" in SECRETS  # which the store's check names


def test_what_participants_wrote_is_escaped(site: Path) -> None:
    for path in pages(site):
        text = path.read_text()
        assert "alert(1)" not in text.replace("&lt;img src=x onerror=alert(1)&gt;", ""), path
        assert "<script>alert" not in text
        assert "<b>" not in text
        scripts = text.count("<script")
        assert scripts == text.count("<script>for (const table")
    assert HOSTILE in read(of(site, HOSTILE_ID)).text
    assert f"RuntimeError: {HOSTILE}" in read(of(site, "failing")).text
    for path in every(site):
        assert re.fullmatch(r"\.?[a-z0-9-]+(\.[a-z]+)?", path.name), path


def test_every_link_leads_to_a_page_of_the_site(site: Path) -> None:
    followed = 0
    for path in pages(site):
        inside = site if path.is_relative_to(site) else path
        for tag, attributes in read(path).elements:
            for name in ("href", "src", "action", "srcset", "data"):
                if name not in attributes:
                    continue
                parts = urlsplit(attributes[name])
                assert (parts.scheme, parts.netloc) == ("", ""), (path, tag)
                if parts.path:
                    target = (path.parent / unquote(parts.path)).resolve()
                    assert target.is_file(), (path, attributes[name])
                    assert target.is_relative_to(inside), (path, attributes[name])
                    followed += 1
    assert followed > 200


def test_only_the_sites_own_style_and_script_may_run(site: Path) -> None:
    for path in pages(site):
        page = read(path)
        if path == site / "index.html":
            assert not page.all("script", "style")
            continue
        (policy,) = [m["content"] for m in page.all("meta") if "http-equiv" in m]
        assert policy.startswith("default-src 'none'; script-src 'sha256-")
        assert not [a for _, a in page.elements if any(n == "style" or n[:2] == "on" for n in a)]
        assert not page.all("img", "iframe", "object", "embed", "base")


def test_pages_to_hand_out_hold_one_participant_each(site: Path) -> None:
    folder = private_folder(site)
    assert folder.stat().st_mode & 0o077 == 0
    lines = (folder / "index.csv").read_text().splitlines()
    assert lines[0] == "id,name,en,zh"
    (mine,) = [line.split(",") for line in lines if line.startswith("one,")]
    text = (folder / mine[2]).read_text()
    assert "王小明" in text
    for other in ("Zoë", "Ana", "Tom", "alert"):
        assert other not in text.replace("first line &lt;script&gt;alert", "")
    assert re.fullmatch(r"en/one-[0-9a-f]{32}\.html", mine[2])
    assert secret_name("one", b"a key") != secret_name("one", b"another")
    assert not list(site.rglob("*key*"))


def test_names_of_pages_to_hand_out_stay_when_the_site_is_written_again(tmp_path: Path) -> None:
    fill(tmp_path / "s.sqlite")
    written = []
    for _ in range(2):
        done = command(
            tmp_path / "s.sqlite", "--format", "html", "-o", str(tmp_path / "x"), "--private"
        )
        assert done.exit_code == 0, done.output
        written.append(sorted(p.name for p in (tmp_path / "x-private" / "zh").iterdir()))
    assert written[0] == written[1]
    assert len(written[0]) == 8
    assert not [p for p in tmp_path.iterdir() if ".new" in p.name or ".old" in p.name]


def test_a_folder_that_is_no_earlier_site_is_left_alone(tmp_path: Path) -> None:
    fill(tmp_path / "s.sqlite")
    kept = tmp_path / "homework" / "mine.txt"
    kept.parent.mkdir()
    kept.write_text("mine")
    refused = command(tmp_path / "s.sqlite", "--format", "html", "-o", str(kept.parent))
    assert refused.exit_code == 2
    assert refused.stderr.count("\n") == 1
    assert "no earlier site" in refused.stderr
    assert [path.name for path in kept.parent.iterdir()] == ["mine.txt"]
    beside = tmp_path / "site-private"
    kept.parent.rename(beside)
    refused = command(
        tmp_path / "s.sqlite", "--format", "html", "-o", str(tmp_path / "site"), "--private"
    )
    assert refused.exit_code == 2
    assert not (tmp_path / "site").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    fill(tmp_path / "s.sqlite")
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    refused = command(tmp_path / "s.sqlite", "--format", "html", "-o", str(locked / "site"))
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)


def test_an_earlier_site_stays_where_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "s.sqlite")
    options = ["--format", "html", "-o", str(tmp_path / "x")]
    assert command(tmp_path / "s.sqlite", *options).exit_code == 0
    before = {path: path.read_bytes() for path in (tmp_path / "x").rglob("*.html")}

    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("judge.site.build.Path.write_text", full)
    failed = command(tmp_path / "s.sqlite", *options)
    monkeypatch.undo()
    assert failed.exit_code == 2
    assert {path: path.read_bytes() for path in (tmp_path / "x").rglob("*.html")} == before
    assert sorted(p.name for p in tmp_path.iterdir() if "x" in p.name.split(".")) == ["x"]


def test_options_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    fill(tmp_path / "s.sqlite")
    root = ["--format", "html", "-o", "/", "--private"]  # nothing can lie beside it
    for options in (["--format", "html"], ["-o", "x"], ["--format", "csv", "--private"], root):
        refused = command(tmp_path / "s.sqlite", *options)
        assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)


def test_an_empty_store_has_a_site_too(tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite"):
        pass
    done = command(tmp_path / "s.sqlite", "--format", "html", "-o", str(tmp_path / "x"))
    assert done.exit_code == 0
    assert "Nothing is graded yet" in read(tmp_path / "x" / "en" / "index.html").text


def test_a_row_costs_so_little_that_a_thousand_fit_in_300_kb(tmp_path: Path) -> None:
    sizes = {}
    for people in (10, 40):
        store_file = tmp_path / f"{people}.sqlite"
        with Store(store_file) as store:
            for number in range(people):
                who = Participant(f"32101{number:05}", f"Name of length {number}")
                add(store, who, class_record(1.0 + number / 100))
            write_site(store, tmp_path / "x", None, False, private=False)
        sizes[people] = (tmp_path / "x" / "en" / "index.html").stat().st_size
    assert (sizes[40] - sizes[10]) / 30 < 220  # five cases here; eleven more take 70 bytes


def test_latest_attempts_are_shown_where_they_count(tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite") as store:
        for label, factor in (("1", 1.5), ("2", 1.1)):
            add(store, Participant("a"), class_record(factor), label)
        write_site(store, tmp_path / "x", None, True, private=False)
        (board,) = store_boards(store, None, True)
    assert read(tmp_path / "x" / "en" / "index.html").tables[0][1][2] == "101.20"
    assert board.rows[0].result == 2
    history = read(of(tmp_path / "x", "a", board=1)).tables[1]
    assert [("counts" in row[-1]) for row in history[1:]] == [False, True]


def test_boards_without_what_is_ranked_by_are_left_out(tmp_path: Path) -> None:
    case = make_case("other")
    smoke = make_record([make_suite("smoke", [case])], [make_result("smoke", case, score=7.0)])
    with Store(tmp_path / "s.sqlite") as store:
        add(store, Participant("a"), class_record(1.5))
        add(store, Participant("b"), smoke, settings="newer")
        written = write_site(store, tmp_path / "x", "public", False, private=False)
    assert [board.number for board in written.boards] == [2]
    assert len(read(tmp_path / "x" / "en" / "index.html").tables[0]) == 2  # a head, and a's row
    assert not (tmp_path / "x" / "en" / "board-2.html").exists()


def test_both_languages_have_every_word_with_the_same_places() -> None:
    def places(text: str) -> set[str]:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name}

    for key, forms in _WORDS.items():
        assert len(forms) == len(LANGUAGES), key
        assert len({frozenset(places(form)) for form in forms}) == 1, key
    assert Words("en")("ranked_by", by="<b>") == "Ranked by &lt;b&gt;."


def test_commands_that_read_a_store_start_without_torch() -> None:
    program = (
        "import sys, judge.entry as e, importlib\n"
        "for module, name in e.LIGHT.values(): getattr(importlib.import_module(module), name)\n"
        "import judge.site.build\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


def test_the_board_starts_without_what_other_commands_need() -> None:
    program = (
        "import sys, judge.commands.leaderboard\n"
        "sys.exit(bool({'torch', 'yaml', 'rich', 'jinja2', 'tarfile'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
