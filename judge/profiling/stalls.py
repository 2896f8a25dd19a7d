"""What each warp state of Nsight Compute means, in a few words.

After the stall reasons of NVIDIA's Nsight Compute Profiling Guide ("Warp Stall Reasons"). A warp
that is not issuing waits for …
"""

from __future__ import annotations

SELECTED = "selected"

MEANINGS = {
    "long_scoreboard": "data from global or local memory (L1TEX, L2, DRAM)",
    "short_scoreboard": "data from shared memory or a special function (MIO)",
    "barrier": "the other warps of its block (__syncthreads)",
    "wait": "a fixed latency between dependent instructions",
    "math_pipe_throttle": "a math pipe that is busy",
    "mio_throttle": "room in the queue to shared memory and special functions",
    "lg_throttle": "room in the queue to global and local memory",
    "tex_throttle": "room in the queue to the texture unit",
    "gmma": "a warpgroup's matrix product (WGMMA)",
    "membar": "a memory fence",
    "not_selected": "its turn: ready, but another warp was issued",
    "no_instruction": "its next instruction from the instruction cache",
    "branch_resolving": "the target of a branch",
    "dispatch_stall": "the dispatcher, which held it back",
    "drain": "its last stores, at the end of the kernel",
    "imc_miss": "a constant that the constant cache did not hold",
    "sleeping": "the end of its sleep (__nanosleep)",
    "misc": "other reasons of the hardware",
    SELECTED: "nothing: this cycle issues the instruction",
}


def label(reason: str) -> str:
    """A reason as people write it: long_scoreboard is "long scoreboard"."""
    return reason.replace("_", " ")
