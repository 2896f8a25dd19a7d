"""What decides a result, as one key: the submission's content and everything it is graded under."""

from __future__ import annotations

import hashlib
import io
import os
import tokenize
from dataclasses import asdict

import msgspec

from judge import __version__
from judge.baseline import Measure
from judge.bench import Plan
from judge.implementations import versions_of
from judge.submission import Submission

_WITHOUT_MEANING = (tokenize.COMMENT, tokenize.NL)
_LAYOUT = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def content_digest(submission: Submission) -> str:
    """SHA-256 over names and contents, comments and blank lines of Python files aside."""
    digest = hashlib.sha256()
    digest.update(os.fsencode(submission.entry))
    for name, content in sorted(submission.files.items()):
        told = _meaning(content) if name.endswith(".py") else content
        digest.update(b"\0" + os.fsencode(name) + f"\0{len(told)}\0".encode())
        digest.update(told)
    return digest.hexdigest()


def settings_key(plan: Plan) -> str:
    """SHA-256 over all that a result follows from, the submission aside.

    Cases with their tolerances, suites, protocol, baseline, SM budget, versions of judge, torch and
    TileLang, device, sandbox. Of a baseline that is measured it is how, not what came out. In
    which order cases and suites stand is none of it.
    """
    environment = plan.environment
    settings = {
        "suites": {s.name: [s.weight, sorted(c.name for c in s.cases)] for s in plan.suites},
        "cases": {case.name: [suite, asdict(case)] for suite, case in plan.cases},
        "strict": plan.strict,
        "gate": plan.gate,
        "seed": plan.seed,
        "count": asdict(plan.count),
        "timeout_s": plan.limits.run,
        "baseline": asdict(plan.choice.baseline) if plan.choice.baseline else _measured(plan),
        "sandbox": str(plan.child.sandbox.kind),
        "judge": __version__,
        "torch": environment.torch,
        "tilelang": environment.tilelang,
        "device": [
            *(plan.device.type, environment.device_name, environment.sms),
            environment.sms_of,
        ],
    }
    return hashlib.sha256(msgspec.json.encode(settings, order="sorted")).hexdigest()


def _measured(plan: Plan) -> list[object]:
    measure = plan.choice.measure
    return [measure.value, versions_of(plan.public) if measure is Measure.LIVE else {}]


def _meaning(source: bytes) -> bytes:
    """The tokens of Python source that mean something; the source where it has no tokens.

    How far a block is indented means nothing, that it is does.
    """
    told: list[str] = []
    try:
        for token in tokenize.tokenize(io.BytesIO(source).readline):
            if token.type not in _WITHOUT_MEANING:
                text = "" if token.type in _LAYOUT else token.string
                told.append(f"{token.type}:{text}")
        return b"tokens\0" + "\0".join(told).encode("utf-8", "surrogatepass")
    except (tokenize.TokenError, SyntaxError, ValueError, LookupError, RecursionError):
        return b"source\0" + source
