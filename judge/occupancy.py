"""How many blocks of a kernel fit on one SM, by each of its limits (CUDA's occupancy rules)."""

from __future__ import annotations

from dataclasses import dataclass

from judge.profiles import DeviceProfile

WARP = 32
_REGISTER_UNIT = 256  # registers are handed to a warp in such portions
_WARP_UNIT = 4  # one warp for each of the SM's four partitions
_SHARED_UNIT = 128  # bytes


@dataclass
class Occupancy:
    """Blocks (CTAs) that fit on one SM by each limit; `binds` names the smallest.

    registers, shared, threads: what these allow, 0 where not even one fits. ctas: the smallest of
    them and of the SM's own limit on blocks. binds: registers, shared memory, threads or blocks;
    several, joined by " and ", where they allow equally few.
    """

    registers: int
    shared: int
    threads: int
    ctas: int
    binds: str


def occupancy(threads: int, registers: int, shared: int, profile: DeviceProfile) -> Occupancy:
    """Occupancy of a kernel.

    threads: of a block. registers: of a thread, as ptxas states them. shared: bytes of a block,
    static and dynamic together.
    """
    warps = -(-threads // WARP)
    limits = {
        "registers": _by_registers(warps, registers, profile),
        "shared memory": _by_shared(shared, profile),
        "threads": 0
        if threads > profile.threads_per_block
        else profile.threads_per_sm // (warps * WARP),
        "blocks": profile.blocks_per_sm,
    }
    ctas = min(limits.values())
    binds = " and ".join(name for name, limit in limits.items() if limit == ctas)
    return Occupancy(limits["registers"], limits["shared memory"], limits["threads"], ctas, binds)


def _by_registers(warps: int, registers: int, profile: DeviceProfile) -> int:
    if registers == 0:
        return profile.blocks_per_sm
    a_warp = _round_up(registers * WARP, _REGISTER_UNIT)
    fitting = profile.registers_per_sm // a_warp
    return fitting // _WARP_UNIT * _WARP_UNIT // warps


def _by_shared(shared: int, profile: DeviceProfile) -> int:
    if shared > profile.shared_per_block:
        return 0
    return profile.shared_per_sm // _round_up(shared + profile.shared_reserved, _SHARED_UNIT)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
