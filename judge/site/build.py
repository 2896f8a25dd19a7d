"""A store → the site's folder: every page of every board, in every language."""

from __future__ import annotations

import csv
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from judge.brief import AnyRecord
from judge.garbage import set_aside
from judge.leaderboard import Board, Row, histories, make_boards
from judge.record import Record
from judge.site.folder import SiteError, check_replaceable, replaced
from judge.site.names import secret_name
from judge.site.pages import (
    BoardSite,
    SubmissionPage,
    board_site,
    case_pages,
    submission_page,
)
from judge.site.render import STYLE, Pages, chooser
from judge.site.words import LANGUAGES
from judge.store.decisions import standing
from judge.store.store import Store
from judge.text import csv_cell

KEY = "key"
INDEX = "index.csv"
_KEY_BYTES = 32


@dataclass(frozen=True)
class Written:
    """What was written: boards, and pages in each language; private: None where none was."""

    boards: list[Board]
    pages: int
    private: Path | None


def write_site(
    store: Store, folder: Path, by: str | None, latest: bool, *, private: bool
) -> Written:
    """Write the site of a store to `folder`, which is replaced as a whole.

    by, latest: as for `make_boards`; boards that do not have `by` are left out. private:
    whether also to write a page for each participant to `private_folder(folder)`. Raises
    StoreError, and SiteError where a folder cannot be written.
    """
    hand_out = private_folder(folder) if private else None
    for one in (folder, hand_out):
        if one is not None:
            check_replaceable(one)
    site = _Site(store, by, latest)
    theirs: dict[str, list[tuple[BoardSite, SubmissionPage]]] = {}
    with set_aside():
        with replaced(folder) as new:
            count = site.write(new, theirs if private else None)
        if hand_out is not None:
            key = _key(hand_out)
            with replaced(hand_out, mode=0o700) as new:
                _write_private(new, key, site.renderers, theirs)
    return Written(site.boards, count, hand_out)


def private_folder(folder: Path) -> Path:
    """Where participants' pages go: beside the site, lest anybody publish them with it.

    Raises SiteError where nothing can lie beside it.
    """
    target = folder.resolve()
    if not target.name:
        raise SiteError(f"{folder}: has no folder beside it; name another folder (-o)")
    return target.with_name(f"{target.name}-private")


class _Site:
    """What is read from a store once, and the pages made of it."""

    def __init__(self, store: Store, by: str | None, latest: bool) -> None:
        self._store = store
        self._people, self._attempts = store.participants(), store.attempts()
        self._results = store.briefs()
        self._decisions = standing(store.decisions())
        everything = (self._people, self._attempts, self._results)
        boards = make_boards(*everything, by, latest, self._decisions)
        self.boards = [board for board in boards if by is None or by in board.names]
        self._briefs: dict[int, AnyRecord] = {one.id: one.record for one in self._results}
        self._samples = [self._sample(board) for board in self.boards]
        self._sites = [
            board_site(board, number, self._briefs[sample])
            for number, (board, sample) in enumerate(
                zip(self.boards, self._samples, strict=True), start=1
            )
        ]
        self.renderers = [Pages(code, self._sites, latest=latest) for code in LANGUAGES]

    def write(
        self, folder: Path, keep: dict[str, list[tuple[BoardSite, SubmissionPage]]] | None
    ) -> int:
        """Write all pages below `folder`; how many in each language. keep: takes submissions'."""
        (folder / "style.css").write_text(STYLE)
        (folder / "index.html").write_text(chooser())
        count = 0
        for site, sample in zip(self._sites, self._samples, strict=True):
            for code in LANGUAGES:
                (folder / code / str(site.number)).mkdir(parents=True)
            for page in self._submissions(site):
                if keep is not None:
                    keep.setdefault(page.row.participant.id, []).append((site, page))
                for renderer in self.renderers:
                    path = site.people[page.row.participant.id]
                    self._put(folder, renderer, path, renderer.submission(site, page))
            for case in case_pages(site, self._store.record(sample), self._briefs):
                path = {**site.cases, **site.untimed}[case.name]
                for renderer in self.renderers:
                    self._put(folder, renderer, path, renderer.case(site, case))
            for renderer in self.renderers:
                self._put(folder, renderer, site.page, renderer.board(site))
            count += len(site.people) + len(site.cases) + len(site.untimed) + 1
        if not self._sites:
            for renderer in self.renderers:
                (folder / renderer.words.language).mkdir()
                self._put(folder, renderer, "index.html", renderer.nothing())
        return count

    def _submissions(self, site: BoardSite) -> Iterator[SubmissionPage]:
        everything = (self._people, self._attempts, self._results)
        history = histories(site.board, *everything, self._decisions)
        for row in site.board.rows:
            record = self._record(row)
            check = None if record is None else self._store.check(record.submission.digest)
            yield submission_page(row, site.ranked, history[row.participant.id], record, check)

    def _record(self, row: Row) -> Record | None:
        return None if row.result is None else self._store.record(row.result)

    def _sample(self, board: Board) -> int:
        """The newest result that has as many cases as any."""
        group = [one for one in self._results if one.settings == board.settings]
        return max(group, key=lambda one: (len(one.record.results), one.id)).id

    @staticmethod
    def _put(folder: Path, renderer: Pages, path: str, text: str) -> None:
        (folder / renderer.words.language / path).write_text(text, encoding="utf-8")


def _key(folder: Path) -> bytes:
    """The secret by which names are made: that of the earlier pages, so that their names stay."""
    try:
        return bytes.fromhex((folder / KEY).read_text())
    except (OSError, ValueError):
        return secrets.token_bytes(_KEY_BYTES)


def _write_private(
    folder: Path,
    key: bytes,
    renderers: Sequence[Pages],
    theirs: dict[str, list[tuple[BoardSite, SubmissionPage]]],
) -> None:
    (folder / KEY).write_text(key.hex())
    (folder / KEY).chmod(0o600)
    with (folder / INDEX).open("w", newline="", encoding="utf-8") as file:
        index = csv.writer(file, lineterminator="\n")
        index.writerow(["id", "name", *LANGUAGES])
        for renderer in renderers:
            (folder / renderer.words.language).mkdir()
        for participant, results in theirs.items():
            name = f"{secret_name(participant, key)}.html"
            for renderer in renderers:
                page = folder / renderer.words.language / name
                page.write_text(renderer.private(results), encoding="utf-8")
            who = [csv_cell(participant), csv_cell(results[0][1].row.name)]
            index.writerow([*who, *(f"{code}/{name}" for code in LANGUAGES)])
