"""A store with a bit of everything, and HTML pages read back, for the tests of the site."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path

from judge.card import Card
from judge.check_report import (
    CHECK_SCHEMA_VERSION,
    CheckedCase,
    CheckedSubmission,
    CheckReport,
    CheckVerdict,
    GridUse,
    KernelReport,
)
from judge.occupancy import occupancy
from judge.profiles import PROFILES
from judge.record import Record, Witness
from judge.roster import Participant
from judge.scoring import result_score
from judge.store.decisions import Decision, Kind
from judge.store.store import Store
from judge.uploads import Place, Upload
from judge.verdict import Rules, Verdict
from tests.make_record import (
    PUBLIC,
    make_case,
    make_environment,
    make_record,
    make_result,
    make_suite,
    public_baseline,
)

HOSTILE = "<script>alert('x')</script>"
HOSTILE_ID = "../../<img src=x onerror=alert(1)>"
SECRET_NAME, SECRET_TOKENS, SECRET_MS = "secret_shape", 4321, 7.7654321
SECRETS = ("secret", "4321", "7.765", "hidden_only_kernel", "worst at [9")
CASES = [make_case(name, shape) for name, (shape, _, _) in PUBLIC.items()]
HIDDEN = make_case(SECRET_NAME, (3, SECRET_TOKENS, 7, 14), gate="hard_forget")
CHECK = make_case("one_token", (1, 1, 2, 4), timed=False)


def class_record(
    factor: float, *, hidden_score: float | None = None, failing: bool = False, log: str = ""
) -> Record:
    """A run at a multiple of t100's speed.

    hidden_score: None for the public times' own, else that; failing: whether the first public case
    crashed, the hidden one was wrong and so was the gate's.
    """
    results = []
    for number, case in enumerate(CASES):
        bad = failing and number == 0
        median = None if bad else PUBLIC[case.name][2] / factor
        verdict = Verdict.CRASH if bad else Verdict.PASS
        result = make_result("public", case, verdict=verdict, median_ms=median)
        result.detail = f"RuntimeError: {HOSTILE}" if bad else ""
        result.score = result_score(case, verdict, result.timing, public_baseline())
        if not bad:
            result.witness = Witness(1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, PUBLIC[case.name][2] / 5)
        results.append(result)
    verdict = Verdict.WRONG if failing else Verdict.PASS
    score = 0.0 if failing else hidden_score if hidden_score is not None else 100.0
    hidden = make_result("hidden", HIDDEN, verdict=verdict, median_ms=SECRET_MS, score=score)
    hidden.detail = "worst at [9, 8, 7, 6]" if failing else ""
    gate = make_result("correctness", CHECK, verdict=verdict, detail="worst at [0, 0]")
    suites = [
        make_suite("public", CASES, 0.6),
        make_suite("hidden", [HIDDEN], 0.4),
        make_suite("correctness", [CHECK]),
    ]
    record = make_record(suites, [*results, hidden, gate], notes=[f"no baseline for {SECRET_NAME}"])
    return replace(record, submission=replace(record.submission, log=log))


def check_report(digest: str) -> CheckReport:
    """Two kernels, one of which a hidden case alone launches."""
    profile = PROFILES["h800-mig-1g.10gb"]

    def kernel(symbol: str, case: str) -> KernelReport:
        return KernelReport(
            kernel=symbol,
            symbol=symbol,
            threads=256,
            registers=168,
            stack=0,
            spill_stores=12,
            spill_loads=8,
            static_shared=1024,
            dynamic_shared=98304,
            shared_limit=profile.shared_per_block,
            occupancy=occupancy(256, 168, 99328, profile),
            units=["wgmma"],
            code="sass",
            grids=[GridUse([16, 1, 1], [case])],
            compile_s=1.0,
            cached=False,
            verdict=CheckVerdict.OK,
            detail="",
            warnings=[],
        )

    def checked(suite: str, number: int) -> CheckedCase:
        case = HIDDEN if suite == "hidden" else CASES[number]
        return CheckedCase(suite, case, CheckVerdict.OK, "", [], [], [])

    return CheckReport(
        schema_version=CHECK_SCHEMA_VERSION,
        judge_version="0.1.0",
        created="2026-01-02T03:04:05Z",
        interrupted=False,
        submission=CheckedSubmission("x", "x", digest, Rules.OK, "", ""),
        profile=profile,
        tilelang="0.1.15",
        torch="2.11.0",
        nvcc="12.8",
        target="sm_90a",
        cache="",
        kernels=[kernel("shown_kernel", CASES[0].name), kernel("hidden_only_kernel", SECRET_NAME)],
        cases=[checked("public", 0), checked("hidden", 0)],
        verdict="ok",
        seconds=1.0,
    )


def add(
    store: Store, who: Participant, record: Record, label: str = "1", settings: str = "s"
) -> None:
    """An attempt of somebody and its result."""
    content = f"{who.id} {label}"
    place = Place(Path("uploads") / "x", who.id, label)
    store.see(Upload(place, None, Card(), "", "2026-01-01T00:00:00+00:00"), who, content)
    store.add(who.id, content, settings, record)


def fill(path: Path) -> None:
    """The store: two boards; ranks 1 to 4 by total, a void, an override, a refusal."""
    log = path.with_name("log.txt")
    log.write_text(
        f"\n[judge] public/{CASES[0].name}\n| first line {HOSTILE}\n| \u2028[judge] forged\n"
        f"\n[judge] hidden/{SECRET_NAME}\n| secret 4321\n"
        f"\n[judge] public/{CASES[1].name}\n| remembered secret 4321\n"
    )
    decided = "2026-01-03T00:00:00+00:00"
    with Store(path) as store:
        best = class_record(1.5, log=str(log))
        add(store, Participant("one", "王小明", "g1"), class_record(1.1), "try 1")
        add(store, Participant("one", "王小明", "g1"), best, "try 2")
        add(store, Participant(HOSTILE_ID, HOSTILE), class_record(1.3))
        add(store, Participant("three", "Zoë"), class_record(1.2))
        add(store, Participant("failing", "Max"), class_record(1.0, failing=True))
        add(store, Participant("void", "Ana"), class_record(1.9))
        add(store, Participant("over", "Tom"), class_record(0.5))
        refused = Upload(Place(Path("uploads/r"), "refused", ""), None, Card(), "holds a link", "")
        store.see(refused, Participant("refused", "Ivy"), "")
        store.decide(Decision("void", None, Kind.VOID, None, "copied <b>", "zoe", decided))
        store.decide(Decision("over", None, Kind.OVERRIDE, 88.0, "device fault", "zoe", decided))
        store.keep_check(check_report(best.submission.digest))
        other = replace(class_record(1.0), environment=make_environment("Another GPU", 16))
        add(store, Participant("elsewhere", "Eve"), other, settings="other")


@dataclass
class Page(HTMLParser):
    """A page's elements in order: tag and attributes; its tables as rows of texts."""

    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    tables: list[list[list[str]]] = field(default_factory=list)
    text: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self._in_cell = False
        self._unread = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attributes}))
        self._unread = tag in ("script", "style")
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self._unread = False
        if tag in ("table", "tr", "td", "th", "tbody", "thead"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._unread:
            return
        self.text += data
        if self._in_cell:
            self.tables[-1][-1][-1] += data

    def all(self, *tags: str) -> list[dict[str, str]]:
        """Attributes of every element of these kinds."""
        return [attributes for tag, attributes in self.elements if tag in tags]


def read(path: Path) -> Page:
    """A page; its cells without the white space around their text."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    for table in page.tables:
        for row in table:
            row[:] = [" ".join(cell.split()) for cell in row]
    return page
