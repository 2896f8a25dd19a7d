"""A child that checks, replaced where it dies: what was asked of it can be asked again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from judge.case import Case
from judge.check_report import CheckVerdict
from judge.child.errors import ChildError, ChildTimeout
from judge.child.log import ChildLog
from judge.child.process import Child, ChildOptions
from judge.child.protocol import (
    Check,
    Checked,
    Compile,
    Compiled,
    Failed,
    Load,
    Loaded,
    ProtocolError,
    Ready,
    Reply,
    Request,
)
from judge.submission import Submission
from judge.text import plain

_TEXT = 600


@dataclass(frozen=True)
class CheckLimits:
    """Seconds that each phase may take; compile is --timeout."""

    start: float = 120.0
    load: float = 120.0
    call: float = 120.0
    compile: float = 600.0


class CheckFailure(Exception):
    """What was asked for failed: a verdict, and one plain line."""

    def __init__(self, verdict: CheckVerdict, detail: str) -> None:
        super().__init__(detail)
        self.verdict = verdict
        self.detail = plain(detail, _TEXT)


class CheckSession:
    """Asks a child, and starts another one after any that died or hung."""

    def __init__(
        self, submission: Submission, options: ChildOptions, limits: CheckLimits, log: ChildLog
    ) -> None:
        self._keeps_cache = True
        self._submission = submission
        self._options = options
        self._limits = limits
        self._log = log
        self._child: Child | None = None
        self._import_failure: CheckFailure | None = None
        self._loaded = False
        self._known: set[str] = set()

    def start(self) -> None:
        """Start the child without waiting for it."""
        self._child = Child(
            self._submission, self._options, self._log, keeps_cache=self._keeps_cache
        )

    def check(self, case: Case) -> Checked:
        """Make the dry calls of a case. Raises CheckFailure."""
        self._ensure_loaded()
        checked = self._ask(Check(case), Checked, "dry call", self._limits.call)
        self._known.update(launch.kernel for launch in checked.launches)
        return checked

    def compile(self, kernel: str, beside: Sequence[str], launched_by: Case) -> Compiled:
        """Compile a kernel. A child that has not seen it sees its case first.

        A compilation that takes the child with it is tried once more, alone: another one that
        ran beside it may have been the cause. Raises CheckFailure.
        """
        try:
            return self._compile(kernel, beside, launched_by)
        except CheckFailure as failure:
            if failure.verdict is not CheckVerdict.CRASH or not beside:
                raise
        return self._compile(kernel, [], launched_by)

    def seal_cache(self) -> None:
        """Keep what was compiled so far, and nothing from here on: hidden cases come next."""
        self._keeps_cache = False
        if self._child is not None:
            self._child.seal_cache()

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def _compile(self, kernel: str, beside: Sequence[str], launched_by: Case) -> Compiled:
        self._ensure_loaded()
        if kernel not in self._known:
            self.check(launched_by)
        if kernel not in self._known:
            raise CheckFailure(
                CheckVerdict.NOT_CHECKED, "a second dry call did not launch it, so it cannot be had"
            )
        request = Compile(kernel, [other for other in beside if other in self._known])
        return self._ask(request, Compiled, "compile", self._limits.compile)

    def _ensure_loaded(self) -> None:
        if self._import_failure is not None:
            raise self._import_failure
        if self._child is not None and self._loaded:
            return
        if self._child is None:
            self.start()
        reply = self._guarded("start", self._limits.start, lambda child, s: child.reply(s))
        if not isinstance(reply, Ready):
            raise CheckFailure(CheckVerdict.CRASH, f"the child did not start: {reply}")
        try:
            self._ask(Load(), Loaded, "import", self._limits.load)
        except CheckFailure as failure:
            self._import_failure = failure
            raise
        self._loaded = True

    def _ask(self, request: Request, wanted: type[Reply], phase: str, limit_s: float) -> Reply:
        reply = self._guarded(phase, limit_s, lambda child, s: child.ask(request, s))
        if isinstance(reply, Failed):
            verdict = CheckVerdict.IMPORT_ERROR if phase == "import" else CheckVerdict.CRASH
            raise CheckFailure(verdict, reply.error)
        if not isinstance(reply, wanted):
            self._drop()
            raise CheckFailure(
                CheckVerdict.CRASH, f"answered {type(reply).__name__} during {phase}"
            )
        return reply

    def _guarded(self, phase: str, limit_s: float, talk: Callable[[Child, float], Reply]) -> Reply:
        try:
            return talk(self._child, limit_s)
        except ChildTimeout:
            self._drop()
            text = f"{phase}: no answer within {limit_s:g} s"
            raise CheckFailure(CheckVerdict.TIMEOUT, text) from None
        except (ChildError, ProtocolError) as error:
            self._drop()
            raise CheckFailure(CheckVerdict.CRASH, f"{phase}: {error}") from None

    def _drop(self) -> None:
        self._child.kill()
        self._child = None
        self._loaded = False
        self._known.clear()
