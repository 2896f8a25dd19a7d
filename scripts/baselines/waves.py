"""How long grids of equal CTAs took that fill an SM each: what scripts/measure_waves.py writes."""

from __future__ import annotations

import statistics

import msgspec

COUNTS = (14, 15, 16, 28, 29)
"""Around one and two waves of 14, the lab's slice, and of 16, which Hopper hands out."""


class Waves(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Milliseconds by number of CTAs, one a run; `1` is a wave. spin_ns: what a CTA spins.

    created: UTC in ISO 8601.
    """

    device_name: str
    driver: str
    torch: str
    sms: int
    created: str
    spin_ns: int
    milliseconds: dict[int, list[float]]

    def expected(self, count: int) -> int:
        """Waves that so many CTAs must take."""
        return -(-count // self.sms)

    def found(self, count: int) -> float | None:
        """Waves that they took: their median over that of one CTA; None where not measured."""
        if count not in self.milliseconds or 1 not in self.milliseconds:
            return None
        return statistics.median(self.milliseconds[count]) / statistics.median(self.milliseconds[1])
