"""Implementations in PyTorch in the place of public ones, and forms of inputs that they take."""

from __future__ import annotations

import textwrap

from judge.child.arguments import InputForm
from judge.implementations import (
    FULL,
    Implementation,
)
from judge.repetitions import Repetitions
from judge.submission import Submission, submission_from
from tests.trial import ROOT

RAW = """
    import time
    import torch
    from reference.chunked import chunked_forward
    from reference.preprocess import preprocess_for

    preprocess = preprocess_for(torch.device("cpu"))
    calls = 0

    def gdn_prefill_forward(q, k, v, raw_g, beta, initial_state):
        global calls
        calls += 1
        {line}
        g_cumsum, A = preprocess(k, raw_g, beta)
        o, s = chunked_forward(q, k, v, g_cumsum, beta, A, initial_state, dtype=torch.float32)
        return o.to(torch.bfloat16), s
"""
# Its A has no decay inside, as FlashQLA's: what a submission gets would make it wrong.
OWN = """
    import torch
    from reference.chunked import chunked_forward
    from reference.preprocess import preprocess_for

    preprocess = preprocess_for(torch.device("cpu"))

    def prepare_arguments(k, raw_g, beta):
        g_cumsum, A = preprocess(k, raw_g, beta)
        return g_cumsum * 2, A.clone() / 2

    def gdn_prefill_forward(q, k, v, g_cumsum, beta, A, initial_state):
        o, s = chunked_forward(
            q, k, v, g_cumsum / 2, beta, A * 2, initial_state, dtype=torch.float32
        )
        return o.to(torch.bfloat16), s
"""
HELPERS = {
    f"reference/{name}": (ROOT / "reference" / name).read_bytes()
    for name in ("__init__.py", "chunked.py", "preprocess.py")
}
COUNT = Repetitions(warmup=1, repetitions=4)
FULL_DEVICE = "raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB')"


def stand_in(
    name: str, body: str, *, scope: str = FULL, inputs: InputForm = InputForm.RAW
) -> Implementation:
    source = textwrap.dedent(body).encode()
    submission = submission_from(name, name, "forward.py", {"forward.py": source} | HELPERS)
    return Implementation(name, scope, "1.0", submission, inputs)


def public(name: str, line: str = "pass") -> Implementation:
    """A whole forward in PyTorch that runs `line` first, with the number of its calls at hand."""
    return stand_in(name, RAW.format(line=line))


def with_full_device(submission: Submission) -> Submission:
    """The same with `_full()`, which finds no room on the device."""
    (name,) = (name for name in submission.files if not name.startswith("reference/"))
    source = submission.files[name] + f"\ndef _full():\n    {FULL_DEVICE}\n".encode()
    return submission_from(submission.name, name, name, submission.files | {name: source})


SLOW = public("slow", "time.sleep(0.2)")
QUICK = public("quick")
WRONG = public("wrong", "raw_g = raw_g * 2")
NOT_THERE = public("not_there", "import no_such_library")
