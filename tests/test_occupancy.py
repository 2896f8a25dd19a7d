"""Blocks that fit on one Hopper SM, against figures worked out by hand from CUDA's rules."""

from __future__ import annotations

import pytest

from judge.occupancy import occupancy
from judge.profiles import PROFILES


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "expected", "binds"),
    [
        # 65536 / (32 registers x 1024 threads) = 2, and 2048 / 1024 = 2
        (1024, 32, 0, (2, 228, 2), "registers and threads"),
        # 168 x 32 = 5376 a warp, 12 warps of 65536, a block has 4
        (128, 168, 0, (3, 228, 16), "registers"),
        # 255 x 32 = 8160, rounded up to 8192: 8 warps, a block has 12
        (384, 255, 0, (0, 228, 5), "registers"),
        # 227 KB and the driver's 1 KB are all that an SM has
        (128, 32, 227 * 1024, (16, 1, 16), "shared memory"),
        (128, 32, 227 * 1024 + 1, (16, 0, 16), "shared memory"),
        # 75 KB with the driver's: three times 76 KB are 228 KB
        (128, 32, 75 * 1024, (16, 3, 16), "shared memory"),
        # 33 warps of 512 registers, three times 33 of 128
        (1025, 16, 0, (3, 228, 0), "threads"),
        (32, 16, 0, (128, 228, 64), "blocks"),
    ],
)
def test_blocks_by_each_limit(
    threads: int, registers: int, shared: int, expected: tuple[int, int, int], binds: str
) -> None:
    found = occupancy(threads, registers, shared, PROFILES["h200"])
    assert (found.registers, found.shared, found.threads) == expected
    assert found.binds == binds
    assert found.ctas == min(*expected, 32)
