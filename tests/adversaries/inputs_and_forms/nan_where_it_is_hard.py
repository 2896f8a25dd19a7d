"""NaN where the work would be long: comparisons with NaN are all false.

Caught as: BAD_RESULT
Evidence: NaN or Inf
Needs: CPU or GPU
"""

from right import gdn_prefill_forward as right
from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result with NaN in its second half."""
    output, state = right(*arguments)
    output[:, output.shape[1] // 2 :] = float("nan")
    return output, state
