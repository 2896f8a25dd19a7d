"""Compiling the kernels of a dry call into TileLang's own cache, figures beside them."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from judge.child.failure import describe
from judge.child.machine_code import PtxasFigures, parse_ptxas
from judge.child.nvcc_watch import NvccRun, NvccWatch
from judge.child.protocol import Compiled, KernelFigures
from judge.child.stand_in_tilelang import DryKernel, KernelShop

FIGURES_FOLDER = "figures"
_ERROR_CHARACTERS = 600


class Compiler:
    """Compiles dry kernels, several at a time. folder: TileLang's cache folder."""

    def __init__(self, folder: Path, workers: int) -> None:
        import tilelang.contrib.nvcc

        self.shop = KernelShop(self._compile_now)
        self._figures = folder / FIGURES_FOLDER
        self._watch = NvccWatch()
        self._watch.install(tilelang.contrib.nvcc)
        self._skip_binary_cache()
        self._pool = ThreadPoolExecutor(workers, "compile")
        self._results: dict[str, Future[Compiled]] = {}

    def start(self, key: str) -> Future[Compiled]:
        """Begin to compile a kernel of the shop, where that has not begun."""
        if key not in self._results:
            self._results[key] = self._pool.submit(self._compile, self.shop.kernels[key])
        return self._results[key]

    def _compile_now(self, kernel: DryKernel) -> Any:
        return self.shop.real_compile(func=kernel.func, **kernel.options)

    def _compile(self, kernel: DryKernel) -> Compiled:
        start = time.monotonic()
        place = self._figures / f"{kernel.key}.json"
        known = _read(place)
        try:
            with self._watch.runs() as runs:
                real = self._compile_now(kernel)
                if known is not None and not runs:
                    return known
                if not runs:
                    # Compiled once without asking for figures: again, past the cache.
                    real = _compiled_afresh(real, kernel)
        except Exception as error:
            text = _readable(error)
            return Compiled(kernel.key, text, [], round(time.monotonic() - start, 3), False)
        figures = _figures_of(real, runs[-1]) if runs else []
        seconds = round(time.monotonic() - start, 3)
        done = Compiled(kernel.key, "", figures, seconds, False)
        if figures:
            self._figures.mkdir(parents=True, exist_ok=True)
            place.write_bytes(msgspec.json.encode(done))
        return done

    def _skip_binary_cache(self) -> None:
        """TileLang 0.1.15 also caches what nvcc made; while figures are wanted, nvcc must run."""
        try:
            from tilelang.cache.cuda_binary_cache import CUDABinaryCache
        except ImportError:
            return
        load, watch = CUDABinaryCache.load, self._watch
        CUDABinaryCache.load = lambda *args: None if watch.listening else load(*args)


def _read(place: Path) -> Compiled | None:
    try:
        known = msgspec.json.decode(place.read_bytes(), type=Compiled)
    except (OSError, msgspec.MsgspecError):
        return None
    return msgspec.structs.replace(known, cached=True)


def _compiled_afresh(real: Any, kernel: DryKernel) -> Any:
    return type(real)(
        kernel.func,
        out_idx=kernel.options["out_idx"],
        execution_backend=real.execution_backend,
        target=real.target,
        target_host=real.target_host,
        verbose=False,
        pass_configs=kernel.options.get("pass_configs"),
        compile_flags=kernel.options.get("compile_flags"),
    )


def _figures_of(real: Any, run: NvccRun) -> list[KernelFigures]:
    """Figures of each CUDA kernel of a TileLang kernel, in the order of their names."""
    from_ptxas, remarks = parse_ptxas(run.output)
    launched = {
        str(name.name_hint): func for name, func in real.artifact.device_mod.functions.items()
    }
    figures = []
    for symbol in sorted(launched, key=lambda name: (len(name), name)):
        attributes = launched[symbol].attrs
        ptxas = from_ptxas.get(symbol, PtxasFigures())
        threads = 1
        for axis, extent in attributes["thread_extent"].items():
            if str(axis).startswith("threadIdx"):
                threads *= int(extent)
        dynamic = attributes.get("dyn_shared_memory_buf", 0)
        figures.append(
            KernelFigures(
                symbol=symbol,
                threads=threads,
                registers=ptxas.registers,
                stack=ptxas.stack,
                spill_stores=ptxas.spill_stores,
                spill_loads=ptxas.spill_loads,
                static_shared=ptxas.static_shared,
                dynamic_shared=int(dynamic),
                units=run.units.get(symbol, []),
                code=run.code if symbol in run.units else "",
                remarks=remarks,
            )
        )
    return figures


def _readable(error: Exception) -> str:
    """The line of a compiler's message that says what is wrong.

    nvcc's comes after the whole source, TVM's after a C++ backtrace.
    """
    text = str(error)
    _, nvcc, output = text.partition("Compilation error:")
    if nvcc:
        for line in output.splitlines():
            if "error" in line or "fatal" in line:
                return f"nvcc: {line.strip()}"[:_ERROR_CHARACTERS]
    return describe(error, "cuda").error[:_ERROR_CHARACTERS]
