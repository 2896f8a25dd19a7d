"""What is timed beside a submission: each in a child of its own, in turns with it."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from judge.audit import Answers
from judge.case import Case
from judge.child.errors import ChildError
from judge.child.protocol import Gauged
from judge.conditions import noise
from judge.implementations import FULL, STUDENT, Implementation
from judge.record import RivalResult
from judge.repetitions import Repetitions
from judge.session import Session
from judge.text import plain
from judge.timing import summarize
from judge.verdict import Verdict

T100, T60 = "t100", "t60"
_NO_ROOM = "out of memory"
Known = set[tuple[str, str, str, str]]
"""What was right: implementation, scope, suite and case."""

_BLOCKS = 2
_TRIAL_SHARE = 5
_LEAST_TRIALS = 5


@dataclass
class _Rival:
    """One implementation and what became of it on the current case.

    trials: milliseconds of calls before the submission's. blocks: of those in turns with them, by
    the block's number. gauged: a call without its host cost.
    """

    implementation: Implementation
    session: Session
    verdict: Verdict = Verdict.NOT_RUN
    detail: str = ""
    role: str = ""
    trials: list[float] = field(default_factory=list)
    blocks: dict[int, list[float]] = field(default_factory=dict)
    gauged: Gauged | None = None

    @property
    def right(self) -> bool:
        return self.verdict is Verdict.PASS

    @property
    def hostile(self) -> bool:
        """Whether it runs the submission's code."""
        return self.implementation.name == STUDENT

    @property
    def samples(self) -> list[float]:
        """Milliseconds of all calls in turns with the submission's."""
        return [sample for _, block in sorted(self.blocks.items()) for sample in block]

    @property
    def median_ms(self) -> float:
        return statistics.median(self.samples or self.trials)


class Rivals:
    """The rivals of a run, case after case; none of them can end it.

    public: candidates for t100 and whatever else is to be timed. simple: the one that is t60, None
    where nobody asks for it. new_session: starts an implementation's child. pause: stops the
    submission's child, or lets it go on: it must not be at work while another one is timed.
    known: what was right beside earlier submissions of a run, and will be for later ones: trusted
    code is checked once. everything: time all of them in turns, instead of the fastest and the
    simple one. blocks_run: how many blocks of the current case were run.
    """

    def __init__(
        self,
        public: Sequence[Implementation],
        simple: Implementation | None,
        new_session: Callable[[Implementation], Session],
        pause: Callable[[bool], None],
        known: Known,
        *,
        everything: bool,
    ) -> None:
        self._public = [_Rival(one, new_session(one)) for one in public]
        self._simple = None if simple is None else _Rival(simple, new_session(simple))
        self._pause = pause
        self._known = known
        self._everything = everything
        self._count = Repetitions(0, 1)
        self._suite = self._case = ""
        self._turns: list[_Rival] = []
        self.blocks_run = 0

    @property
    def sessions(self) -> list[Session]:
        """All sessions, for whoever starts and closes them."""
        return [rival.session for rival in self._all()]

    def prepare(
        self, suite: str, case: Case, seed: int, count: Repetitions, answers: Answers
    ) -> None:
        """Get every rival ready for a case, and check those that are not known to be right.

        What runs the submission's code comes last: the others find the memory they need. Where only
        the fastest takes turns, some calls of all that are right say which one that is.
        """
        self._count, self._suite, self._case = count, suite, case.name
        self.blocks_run = 0
        with self._submission_stopped():
            for rival in sorted(self._all(), key=lambda one: one.hostile):
                rival.trials, rival.blocks, rival.role, rival.gauged = [], {}, "", None
                if not self._prepare_known(rival, case, seed):
                    self._check(rival, case, seed, answers)
            if not self._everything:
                self._try_out()
            self._turns = self._chosen()

    def run_block(self, number: int) -> None:
        """Time half of the calls of each that takes turns; half of the submission's come next.

        number: 0 or 1. What runs the submission's code comes last: it cannot delay the others by
        work it leaves on the device.
        """
        half = self._count.repetitions // _BLOCKS
        calls = self._count.repetitions - half if number == 0 else half
        self.blocks_run = number + 1
        with self._submission_stopped():
            for rival in sorted(self._turns, key=lambda one: one.hostile):
                rival.blocks[number] = self._time(rival, calls)

    @property
    def without_room(self) -> set[str]:
        """Names of what is trusted and found too little device memory on this case."""
        return {
            f"{rival.implementation.name} ({rival.implementation.scope})"
            for rival in self._all()
            if not rival.right and not rival.hostile and _NO_ROOM in rival.detail.lower()
        }

    @property
    def turns_are_complete(self) -> bool:
        """Whether all blocks were run."""
        return self.blocks_run == _BLOCKS

    def complete_turns(self, first: int = 0) -> None:
        """Run the blocks from this number on, which a submission that failed did not get to."""
        for number in range(first, _BLOCKS):
            self.run_block(number)

    def forget_turns(self) -> None:
        """Drop what was timed in turns: something disturbed it."""
        self.blocks_run = 0
        for rival in self._turns:
            rival.blocks.clear()

    def gauge(self) -> None:
        """Measure a call of each that took turns without its host cost; on CUDA only."""
        with self._submission_stopped():
            for rival in self._turns:
                if rival.right:
                    with contextlib.suppress(ChildError), self._awake(rival):
                        rival.gauged = rival.session.gauge()

    def results(self) -> list[RivalResult]:
        """What became of each on the current case; the fastest that is right has role t100."""
        for rival in self._public:
            rival.role = ""
        candidates = [rival for rival in self._public if self._may_be_t100(rival)]
        timed = [rival for rival in candidates if rival.samples or rival.trials]
        in_turns = [rival for rival in timed if rival.samples]
        if timed:
            min(in_turns or timed, key=lambda rival: rival.median_ms).role = T100
        if self._simple is not None:
            self._simple.role = T60
        return [self._result(rival) for rival in self._all()]

    def _all(self) -> list[_Rival]:
        return [*self._public, *([self._simple] if self._simple is not None else [])]

    def _key(self, rival: _Rival) -> tuple[str, str, str, str]:
        one = rival.implementation
        return (one.name, one.scope, self._suite, self._case)

    def _prepare_known(self, rival: _Rival, case: Case, seed: int) -> bool:
        """Whether a rival is known to be right on a case, and its child ready for it."""
        if self._key(rival) not in self._known:
            return False
        try:
            rival.session.prepare(case, seed)
        except ChildError:  # a fresh child, checked anew, tells why
            return False
        rival.verdict, rival.detail = Verdict.PASS, ""
        return True

    def _check(self, rival: _Rival, case: Case, seed: int, answers: Answers) -> None:
        fresh = answers.fresh[:1] if rival.hostile else ()
        wanted = Answers(answers.fixed, fresh)
        with self._awake(rival):
            untimed = replace(case, timed=False)
            result = rival.session.judge(self._suite, untimed, seed, self._count, wanted)
        rival.verdict, rival.detail = result.verdict, result.detail
        if rival.right and not rival.hostile:
            self._known.add(self._key(rival))

    def _chosen(self) -> list[_Rival]:
        right = [rival for rival in self._all() if rival.right]
        if self._everything:
            return right
        candidates = [rival for rival in right if self._may_be_t100(rival)]
        fastest = min(candidates, key=lambda rival: rival.median_ms, default=None)
        return [rival for rival in right if rival is fastest or rival is self._simple]

    def _may_be_t100(self, rival: _Rival) -> bool:
        one = rival.implementation
        is_public = rival is not self._simple and one.name != STUDENT
        return is_public and one.scope == FULL and rival.right

    def _try_out(self) -> None:
        for rival in self._public:
            if self._may_be_t100(rival):
                calls = max(_LEAST_TRIALS, self._count.repetitions // _TRIAL_SHARE)
                rival.trials = self._time(rival, calls)

    def _time(self, rival: _Rival, calls: int) -> list[float]:
        """Milliseconds of calls in the lab's loop. Where they fail it has no time on this case."""
        if not (rival.right and calls):
            return []
        try:
            with self._awake(rival):
                return rival.session.run(Repetitions(self._count.warmup, calls))
        except ChildError as error:
            rival.verdict, rival.detail = Verdict.CRASH, f"while timed: {plain(str(error))}"
            self._known.discard(self._key(rival))
            return []

    def _result(self, rival: _Rival) -> RivalResult:
        one = rival.implementation
        samples = rival.samples or rival.trials
        return RivalResult(
            case=self._case,
            implementation=one.name,
            scope=one.scope,
            version=one.version,
            verdict=rival.verdict,
            detail=rival.detail,
            role=rival.role,
            timing=summarize(samples) if samples and rival.right else None,
            in_turns=bool(rival.samples),
            gpu_ms=rival.gauged.milliseconds if rival.gauged else None,
            gpu_ms_by=rival.gauged.method if rival.gauged else "",
        )

    @contextmanager
    def _awake(self, rival: _Rival) -> Iterator[None]:
        """Let a rival work. One that runs the submission's code rests at all other times."""
        if rival.hostile:
            rival.session.pause(False)
        try:
            yield
        finally:
            if rival.hostile:
                rival.session.pause(True)

    @contextmanager
    def _submission_stopped(self) -> Iterator[None]:
        self._pause(True)
        try:
            yield
        finally:
            self._pause(False)


def failures(results: Sequence[RivalResult]) -> list[str]:
    """A line for each rival that failed on a case."""
    return [
        f"{one.case}: {one.implementation} ({one.scope}) left out: {one.verdict}: {one.detail}"
        for one in results
        if one.verdict is not Verdict.PASS
    ]


def noisy(results: Sequence[RivalResult]) -> list[str]:
    """A line for each t100 and t60 whose calls differ by more than those of a quiet row."""
    return [
        f"{one.case}: {one.implementation} ({one.role}) is noisy: {why}"
        for one in results
        if one.role and one.timing is not None and (why := noise(one.timing, []))
    ]
