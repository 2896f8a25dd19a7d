"""Events that are recorded late: a start event waits until the work is done.

torch.cuda.Event.record does nothing for the first event of a pair; the submission records it
itself when its own work is over.

Caught as: CHEAT
Evidence: found replaced
Needs: GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result

_true = torch.cuda.Event.record
_held: list[torch.cuda.Event] = []


def _held_back(event: torch.cuda.Event, stream: torch.cuda.Stream | None = None) -> None:
    if _held:
        _true(event)
    else:
        _held.append(event)


torch.cuda.Event.record = _held_back


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result; then the start of the clock."""
    result = right(*arguments)
    torch.cuda.current_stream().synchronize()
    if _held:
        _true(_held[0])
        _held.clear()
    return result
