"""What the judge itself puts beside a submission: expected results, baseline and null."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from judge.case import Case
from judge.checking import Expected
from judge.digest import tensor_digest
from judge.problem import Inputs, make_inputs
from judge.submission import Submission, submission_from
from reference.chunked import float64_reference

_REFERENCE = Path(__file__).resolve().parents[1] / "reference"
_NULL = Path(__file__).with_name("null_forward.py")
_BASELINE_FILES = {
    "cuda": ("simple_tilelang.py",),
    "cpu": ("torch_float32.py", "chunked.py", "preprocess.py", "__init__.py"),
}


def expected_results(
    cases: Sequence[Case], seeds: Sequence[int], device: torch.device
) -> list[tuple[Expected, dict[str, str]]]:
    """The float64 references of cases of one shape, from their raw inputs, and inputs' digests.

    All are computed on `device` as the batches of one problem: a long chain then costs its many
    steps once. Digests are of q, k, v and initial_state: float32 sigmoids differ in their last bit
    between processes with different numbers of threads.
    """
    drawn = [make_inputs(case, seed, device) for case, seed in zip(cases, seeds, strict=True)]
    digests = [
        {
            name: tensor_digest(tensor)
            for name in ("q", "k", "v", "initial_state")
            if (tensor := getattr(inputs, name)) is not None
        }
        for inputs in drawn
    ]

    names = ("q", "k", "v", "raw_g", "beta", "initial_state")
    output, final_state = float64_reference(*(_as_one(drawn, name) for name in names))
    del drawn
    if device.type == "cuda":
        torch.cuda.empty_cache()  # the children need the room more than this process's allocator
    batch = cases[0].batch
    expected = zip(output.split(batch), final_state.split(batch), strict=True)
    return [(Expected(*one), some) for one, some in zip(expected, digests, strict=True)]


def _as_one(drawn: Sequence[Inputs], name: str) -> torch.Tensor | None:
    tensors = [getattr(inputs, name) for inputs in drawn]
    return None if tensors[0] is None else torch.cat(tensors)


def null_submission() -> Submission:
    """The submission that does nothing, which runs like any other."""
    return submission_from("null", str(_NULL), _NULL.name, {_NULL.name: _NULL.read_bytes()})


def baseline_submission(device_type: str) -> Submission:
    """The implementation in reference/ that the scores of a device are measured against.

    It runs like any submission: in a child, from its own copy of the files that it needs.
    """
    entry, *helpers = _BASELINE_FILES[device_type]
    files = {entry: (_REFERENCE / entry).read_bytes()}
    files |= {f"{_REFERENCE.name}/{name}": (_REFERENCE / name).read_bytes() for name in helpers}
    return submission_from("reference", str(_REFERENCE / entry), entry, files)
