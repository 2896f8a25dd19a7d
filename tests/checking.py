"""Checking small submissions in the tests, with one compile cache for all of them."""

from __future__ import annotations

from pathlib import Path

from judge.case import Case
from judge.check import CheckPlan, check
from judge.check_report import CheckReport
from judge.check_session import CheckLimits
from judge.profiles import PROFILES
from judge.sandbox.kinds import choose_sandbox
from judge.submission import find_submission
from judge.suites import load_suite

SMOKE = Path(__file__).resolve().parents[1] / "cases" / "smoke.yaml"

HEAD = """
import tilelang
import tilelang.language as T
import torch

HEAD_DIM = 128
"""
KERNEL = """
@tilelang.jit
def build():
    batch, tokens, heads = T.dynamic("batch"), T.dynamic("tokens"), T.dynamic("heads")
    shape = (batch, tokens, heads, HEAD_DIM)

    @T.prim_func
    def bad(v: T.Tensor(shape, "bfloat16"), out: T.Tensor(shape, "bfloat16")):
        with T.Kernel(tokens, heads, batch, threads={threads}) as (t, h, b):
{body}

    return bad
"""
FORWARD = """
def gdn_prefill_forward(q, k, v, g_cumsum, beta, A, initial_state=None):
    output = torch.empty_like(v)
    state = torch.empty((v.shape[0], v.shape[2], 128, 128), dtype=torch.float32, device=v.device)
    {line}
    return output, state
"""
COPY = """
for i in T.Parallel(HEAD_DIM):
    out[b, t, h, i] = v[b, t, h, i]
"""


def kernel(body: str = COPY, threads: int = 128) -> str:
    """A TileLang kernel of this body, one block for each token, head and batch."""
    indented = "\n".join(" " * 12 + line for line in body.strip().splitlines())
    return KERNEL.format(body=indented, threads=threads)


def forward(line: str = "build()(v, output)") -> str:
    """A function of the right form that runs `line`."""
    return FORWARD.format(line=line)


class Silent:
    """Progress that nobody watches."""

    def message(self, message: str) -> None:
        """Say nothing."""


def smoke_cases() -> list[Case]:
    """The small cases: with and without an initial state."""
    return list(load_suite(SMOKE).cases)


def checked(
    path: Path,
    cases: list[Case] | None = None,
    profile: str = "h800-mig-1g.10gb",
    limits: CheckLimits | None = None,
) -> CheckReport:
    """Check the submission at `path` for some cases, by default one."""
    plan = CheckPlan(
        submission=find_submission(path),
        cases=[("smoke", case) for case in cases or smoke_cases()[:1]],
        profile=PROFILES[profile],
        limits=limits or CheckLimits(),
        sandbox=choose_sandbox("auto"),
    )
    return check(plan, Silent())
