"""Compile what the adapter uses of FlashInfer's prefill kernel for Hopper: six files of 66.

    FLASHINFER_CUDA_ARCH_LIST=9.0a python scripts/compile_flashinfer.py [--jobs N] [--into FOLDER]

Needs flashinfer-python 0.6.13, ninja and nvcc, but no GPU. FlashInfer instantiates its kernel for
every choice of dtype, grouped heads, beta, alpha, initial state and checkpoints, a file each. The
adapter (reference/baselines/flashinfer_prefill.py) calls it in bfloat16 with beta and alpha and
without checkpoints: four of these files, the launcher and the entry are compiled by FlashInfer's
own commands and linked without libcuda, whose one function the kernel asks the runtime for. What
is left out stays undefined: a process that calls it otherwise ends with a symbol error.

The library goes to where FlashInfer looks for one compiled ahead, in the installed package, or to
FOLDER/gdn_prefill_sm90.so. Exit status: 0 compiled, 1 not, 2 wrong usage.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from judge.threads import available_cores

ARCHITECTURES = "FLASHINFER_CUDA_ARCH_LIST"
_USED = "bf16_g{grouped}b1a1i{state}c0"


class UnknownSourcesError(ValueError):
    """FlashInfer's files are not those that are known; one line."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=available_cores(),
    help="Files to compile at a time. Default: one for each core.",
)
@click.option(
    "--into",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the library goes. Default: into the installed package.",
)
def main(jobs: int, folder: Path | None) -> None:
    """Compile FlashInfer's prefill kernel for Hopper ahead, as far as the adapter uses it."""
    if importlib.util.find_spec("flashinfer") is None:
        raise click.UsageError("flashinfer-python is not installed: pip install '.[baselines]'")
    if not os.environ.get(ARCHITECTURES):
        raise click.UsageError(f"set {ARCHITECTURES}=9.0a: without a GPU FlashInfer has no other")
    start = time.monotonic()
    try:
        library = compile_used(jobs, folder)
    except subprocess.CalledProcessError as error:
        raise click.ClickException(f"{Path(error.cmd[0]).name} failed: see above") from None
    except FileNotFoundError as error:
        raise click.ClickException(f"{error.filename} is not installed") from None
    except UnknownSourcesError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"{library}: {library.stat().st_size >> 10} KiB in {time.monotonic() - start:.0f} s")


def compile_used(jobs: int, folder: Path | None) -> Path:
    """The library.

    Raises CalledProcessError where ninja or nvcc fails, FileNotFoundError where there is none, and
    UnknownSourcesError.
    """
    from flashinfer.jit.cpp_ext import get_cuda_path
    from flashinfer.jit.gdn import gen_gdn_prefill_sm90_module

    whole = gen_gdn_prefill_sm90_module()
    spec = replace(whole, sources=used(whole.sources))
    spec.write_ninja()
    # in that folder, where ninja then keeps what it has built
    ninja = partial(subprocess.run, check=True, cwd=spec.build_dir)
    rule = ["ninja", "-t", "targets", "rule", "cuda_compile"]
    objects = ninja(rule, stdout=subprocess.PIPE, text=True).stdout.split()
    ninja(["ninja", "-j", str(jobs), *objects])
    library = (spec.aot_path if folder is None else folder / spec.aot_path.name).resolve()
    library.parent.mkdir(parents=True, exist_ok=True)
    unfinished = library.with_suffix(".unfinished")
    # lazy: what is undefined matters where it is called, not when the library is loaded
    link = [f"{get_cuda_path()}/bin/nvcc", "-shared", "-Xlinker=-z,lazy", "-o", str(unfinished)]
    subprocess.run([*link, *objects], check=True)
    return unfinished.rename(library)


def used(sources: Iterable[Path]) -> list[Path]:
    """Of FlashInfer's files those that the adapter's calls reach, in their order.

    Raises UnknownSourcesError where one of them is missing.
    """
    choices = [_USED.format(grouped=grouped, state=state) for grouped in "01" for state in "01"]
    wanted = {f"gdn_prefill_kernel_{choice}" for choice in choices}
    wanted |= {"gdn_prefill_launcher", "prefill_kernel_delta_rule_sm90"}
    found = [source for source in sources if source.stem in wanted]
    if missing := wanted - {source.stem for source in found}:
        raise UnknownSourcesError(
            f"this FlashInfer has no {min(missing)}.cu: install flashinfer-python 0.6.13"
        )
    return found


if __name__ == "__main__":
    main()
