"""Time grids of equal CTAs inside an SM budget: whole waves must show where they must be.

    python scripts/measure_waves.py waves-14.json --sms 14

Every CTA takes all the shared memory that a block can have, hence an SM for itself, and spins for
1 ms of the GPU's own timer, whatever the clocks do. On N SMs, n of them then take ceil(n / N) times
as long as one: CUDA events on the budget's stream, the numbers in turns. Holds the GPU as the judge
does. Needs a CUDA device with green contexts; takes some seconds.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from judge.device import DeviceError, choose_device, gpu_identity  # noqa: E402
from judge.environment import capture  # noqa: E402
from judge.gpu_lock import gpu_lock  # noqa: E402
from judge.sm_budget import SmBudget  # noqa: E402
from scripts.baselines.waves import COUNTS, Waves  # noqa: E402

SPIN_NS = 1_000_000
RUNS = 9
_WARM_UPS = 5
_THREADS = 128
_SPIN = """
extern "C" __global__ void spin(int *sink, int nanoseconds) {
    extern __shared__ int filled[];
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - start < nanoseconds);
    if (start == 0) sink[0] = filled[0];
}
"""


class Spinner:
    """Grids of spinning CTAs on the stream of a budget."""

    def __init__(self, budget: SmBudget, device: torch.device) -> None:
        self._budget = budget
        self._shared = torch.cuda.get_device_properties(device).shared_memory_per_block_optin
        self._kernel = torch.cuda._compile_kernel(_SPIN, "spin")
        self._kernel.set_shared_memory_config(self._shared)
        self._sink = torch.zeros(1, dtype=torch.int32, device=device)
        self._launch(1)  # loads it before SMs are held
        torch.cuda.synchronize(device)

    def milliseconds(self, count: int) -> float:
        """What a grid of so many CTAs takes, by events."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with self._budget.held(), torch.cuda.stream(self._budget.stream):
            start.record()
            self._launch(count)
            end.record()
            end.synchronize()
        return start.elapsed_time(end)

    def _launch(self, count: int) -> None:
        arguments = [self._sink, SPIN_NS]
        self._kernel((count, 1, 1), (_THREADS, 1, 1), arguments, shared_mem=self._shared)


def measure(device: torch.device, sms: int) -> Waves:
    """Time COUNTS and one CTA. Raises RuntimeError where there is no such budget."""
    spinner = Spinner(SmBudget(device, sms), device)
    for _ in range(_WARM_UPS):
        spinner.milliseconds(1)
    samples: dict[int, list[float]] = {count: [] for count in (1, *COUNTS)}
    for _ in range(RUNS):
        for count, times in samples.items():
            times.append(spinner.milliseconds(count))
    machine = capture(device)
    return Waves(
        device_name=machine.device_name,
        driver=machine.driver or "",
        torch=machine.torch,
        sms=sms,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        spin_ns=SPIN_NS,
        milliseconds=samples,
    )


@click.command()
@click.argument("output", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--sms", type=click.IntRange(min=1), required=True)
@click.option("--device", default="cuda:0", help="As for run.py. Default: cuda:0.")
def main(output: Path, sms: int, device: str) -> None:
    """Write OUTPUT; the module's docstring says what is measured."""
    try:
        chosen = choose_device(device)
        if chosen.type != "cuda":
            raise click.UsageError("waves need a CUDA device")
        with gpu_lock(gpu_identity(chosen), lambda text: click.echo(text, err=True)):
            waves = measure(chosen, sms)
    except DeviceError as error:
        raise click.UsageError(str(error)) from None
    except (OSError, RuntimeError) as error:
        raise click.ClickException(str(error).splitlines()[0]) from None
    content = msgspec.json.format(msgspec.json.encode(waves), indent=2)
    output.write_bytes(content + b"\n")


if __name__ == "__main__":
    main()
