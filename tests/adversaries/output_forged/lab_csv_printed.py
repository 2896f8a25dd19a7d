"""The lab's result lines printed to standard output, with zeros as the result.

Caught as: WRONG
Needs: CPU or GPU
"""

import sys

from tools import Argument, Result, garbage_like

_CSV = "case,correctness,median_ms\ncpu,PASS,0.000001\ngpu,PASS,0.000001\n"


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Zeros and a fine report."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__):
        print(_CSV, file=stream, flush=True)
    return garbage_like(arguments)
