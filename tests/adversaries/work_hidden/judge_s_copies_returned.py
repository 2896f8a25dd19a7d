"""The judge's own buffers returned, so that copying the result copies nothing.

What other streams and threads write there later is then in what the judge takes for a copy made
when the call ended.

Caught as: BAD_RESULT
Evidence: lies where the judge keeps its copies
Needs: CPU or GPU
"""

from __future__ import annotations

from right import gdn_prefill_forward as right
from tools import Argument, Result, worker


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result, where the judge would copy it to."""
    result = right(*arguments)
    snapshot = worker()._snapshot
    if snapshot is None:
        return result
    for kept, mine in zip(snapshot.result, result, strict=True):
        kept.copy_(mine)
    return tuple(kept.view(kept.shape) for kept in snapshot.result)
