"""Page models → HTML in one language. Whatever is put into a page is escaped by its template."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from judge.leaderboard import Row
from judge.scoring import BEST_SCORE
from judge.site import charts
from judge.site.pages import BoardSite, CaseLine, CasePage, Mark, SubmissionPage
from judge.site.words import HTML_LANG, LANGUAGES, Words
from judge.text import plain
from judge.verdict import Verdict

HERE = Path(__file__).parent
STYLE = (HERE / "style.css").read_text()
SCRIPT = (HERE / "sort.js").read_text()
NONE = Markup("–")
_KINDS = {Verdict.PASS: "good", Verdict.NOT_RUN: "warn"}


class Pages:
    """Renders the pages of one language.

    sites: of every board. latest: whether the latest attempt counts, else the best.
    """

    def __init__(self, language: str, sites: Sequence[BoardSite], *, latest: bool) -> None:
        self.words = Words(language)
        self._environment = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {"score": _score, "ms": _ms, "when": _when, "text": plain}
        self._environment.filters |= {"verdict": _verdict, "breakable": _breakable}
        self._environment.globals |= {
            "t": self.words,
            "lang": HTML_LANG[language],
            "others": {code: name for code, name in LANGUAGES.items() if code != language},
            "html_lang": HTML_LANG,
            "script": Markup(SCRIPT),
            "style": Markup(STYLE),
            "policy": _policy(),
            "sites": sites,
            "latest": latest,
            "verdicts": list(Verdict),
            "samples_chart": self._samples_chart,
            "place_chart": self._place_chart,
            "tries_chart": self._tries_chart,
            "medians_chart": self._medians_chart,
        }

    def board(self, site: BoardSite) -> str:
        """A board."""
        return self._render("board.html", "", site.page, site=site, board=site.board)

    def nothing(self) -> str:
        """The page of a store that holds no result."""
        return self._render("nothing.html", "", "index.html")

    def submission(self, site: BoardSite, page: SubmissionPage) -> str:
        """A row of a board in full."""
        path = site.people[page.row.participant.id]
        return self._render("submission.html", "../", path, site=site, page=page)

    def case(self, site: BoardSite, page: CasePage) -> str:
        """A case."""
        path = {**site.cases, **site.untimed}[page.name]
        return self._render("case.html", "../", path, site=site, page=page)

    def private(self, results: Sequence[tuple[BoardSite, SubmissionPage]]) -> str:
        """Everything of one participant, in one file that links to no other."""
        return self._render("private.html", "", "", results=results)

    def _render(self, template: str, root: str, path: str, **values: object) -> str:
        """root: the way from the page to its language's folder. path: from there to the page."""
        return self._environment.get_template(template).render(root=root, path=path, **values)

    def _samples_chart(self, line: CaseLine) -> Markup:
        timing = line.timing
        assert timing is not None
        label = self.words(
            "samples_label",
            case=line.name,
            n=len(timing.samples_ms),
            low=_ms(timing.min_ms),
            high=_ms(max(timing.samples_ms)),
            median=_ms(timing.median_ms),
        )
        return Markup(charts.svg(charts.SAMPLES_HEIGHT, label, line.drawn))

    def _place_chart(self, line: CaseLine) -> Markup:
        assert line.timing is not None
        median = line.timing.median_ms
        marks = self._named(line.marks)
        label = self.words("place_label", case=line.name, median=_ms(median), marks=_listed(marks))
        placed = line.placed.replace(">floor ", f">{self.words('floor')} ")
        return Markup(charts.svg(charts.PLACE_HEIGHT, label, placed))

    def _tries_chart(self, history: Sequence[Row]) -> Markup:
        values = [row.value for row in history]
        listed = ", ".join(map(_score, values))
        label = self.words("history_label", n=len(values), values=listed)
        return Markup(charts.tries_chart(values, BEST_SCORE, label))

    def _medians_chart(self, page: CasePage) -> Markup:
        medians = [one.cell.median_ms for one in page.standings if one.cell.median_ms is not None]
        marks = self._named(page.marks)
        label = self.words(
            "medians_label",
            n=len(medians),
            low=_ms(min(medians)),
            high=_ms(max(medians)),
            marks=_listed(marks),
        )
        return Markup(charts.medians_chart(medians, marks, label))

    def _named(self, marks: Sequence[Mark]) -> list[Mark]:
        return [(self.words.known(name), ms) for name, ms in marks]


def chooser() -> str:
    """The page above the languages."""
    environment = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=True)
    return environment.get_template("chooser.html").render(
        languages=LANGUAGES, html_lang=HTML_LANG, words=[Words(code) for code in LANGUAGES]
    )


def _policy() -> str:
    """What a browser may load and run for a page: its style and its one script, nothing else."""
    digests = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (SCRIPT, STYLE)
    ]
    script, style = digests
    return (
        f"default-src 'none'; script-src 'sha256-{script}'; style-src 'self' file: 'sha256-{style}'"
    )


def _listed(marks: Sequence[Mark]) -> str:
    return ", ".join(f"{name} {_ms(ms)}" for name, ms in marks)


def _score(value: float | None) -> Markup:
    return NONE if value is None else Markup(f"{value:.2f}")


def _ms(value: float | None) -> Markup:
    """Four significant digits, which is what times are good for."""
    return NONE if value is None else Markup(f"{value:.4g}" if value < 1000 else f"{value:.0f}")


def _breakable(verdict: Verdict) -> Markup:
    """A verdict that a narrow column may break after its underscore."""
    return Markup(verdict.replace("_", "_<wbr>"))


def _verdict(verdict: Verdict) -> Markup:
    kind = _KINDS.get(verdict, "bad")
    return Markup(f'<span class="{kind}">{verdict}</span>')


def _when(text: str) -> str:
    """An ISO 8601 UTC time to the minute."""
    return text[:16].replace("T", " ")
