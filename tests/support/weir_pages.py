# SPDX-License-Identifier: Apache-2.0
"""What tests of pages share: a run to make a page of, and a page that is open in a browser."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from weir_process import limit

from weir.trace._synthetic import TraceWriter, event, records
from weir.trace.ops import op_named

STEPS = ("traj0", "min0", "traj1")
RANKS = 6


def write_step(directory: Path, seed: int, names: list[str], calls: int = 2000) -> None:
    """A step of RANKS ranks: bursts of reads, then of writes, rank 0 busiest; one process without a
    rank."""
    directory.mkdir(parents=True)
    random = np.random.default_rng(seed)
    begin = 10**18 + seed * 10**13
    ends = {"started_realtime_ns": begin, "ended_realtime_ns": begin + 3 * 10**9, "exit_status": 0,
        "command": ["mpirun", "./model"]}
    (directory / "job.json").write_text(json.dumps({"format": 1, "step": directory.name,
        "cwd": "/scratch/an", "level": "trace", **ends}))
    with TraceWriter(directory / "node0.weir", "node0", created_realtime_ns=begin) as writer:
        for rank in (-1, *range(RANKS)):
            process = writer.process(500 + rank, rank, RANKS)
            files = np.array([process.name(name) for name in names])
            count = calls * (3 if rank == 0 else 1) // 3
            gaps = random.integers(1000, 1_200_000, count) * (1 + 20 * (np.arange(count) % 97 == 0))
            starts = writer.created_ticks + np.cumsum(gaps) * 10**9 // int(gaps
                .sum()) * 2 + rank * 10**6
            kinds = np.where(np.arange(count) < count // 2, op_named("read").value,
                op_named("pwrite").value)
            sizes = 2 ** random.integers(0, 20, count)
            process.events(records(kinds, starts, random.integers(500, 400_000, count),
                file=random.choice(files, count), size=sizes))
            process.events(event("open", writer.created_ticks, 2_000_000, file=int(files[0])),
                thread=2)
            if rank >= 0:
                process.events(_barriers(process, writer.created_ticks, rank))


def _barriers(process, begin: int, rank: int) -> np.ndarray:
    """20 barriers of all ranks, which rank 0 reaches 30 ms after the others; they leave together.
    """
    number = np.arange(20)
    late = 30_000_000 * (rank == 0)
    starts = begin + 50_000_000 + number * 100_000_000 + late
    world = process.name(f"mpi:world:{RANKS}")
    barrier = 1 << 32
    return records(op_named("MPI_collective").value, starts, 30_100_000 - late, file=world,
        size=barrier, offset=number)


class Opened:
    """A page in the browser, unfolded; `js` runs script in it and returns what it returns. `ready`
    is the condition, in script, that a page with plots fulfils when they are drawn."""

    def __init__(self, driver, path: Path, unfold: bool = True,
            ready: str = "document.documentElement.dataset.ready === 'yes'"):
        self.driver = driver
        for kind in ("browser", "performance"):
            driver.get_log(kind)  # what earlier pages left
        driver.get(path.as_uri())
        self.settle(ready)
        if unfold:
            self.js("for (const one of document.querySelectorAll('.fold')) one.open = true")
            self.settle()

    def js(self, script: str, *arguments):
        return self.driver.execute_script(script, *arguments)

    def settle(self, condition: str = "true") -> None:
        """Wait until a condition holds, and then for two frames: plots draw once a frame."""
        done = self.driver.execute_async_script(
            """const end = arguments[arguments.length - 1], until = performance.now() + %s;
            const look = () => (%s) ? requestAnimationFrame(() => requestAnimationFrame(() => end(true)))
              : performance.now() > until ? end(false) : setTimeout(look, 20);
            look();"""
            % (1000 * limit(25), condition)
        )
        assert done, f"never came true: {condition}; console: {self.console()}"

    def console(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Every address that the page asked for, its own among them."""
        messages = (json.loads(entry["message"])["message"]
            for entry in self.driver.get_log("performance"))
        return [one["params"]["request"]["url"] for one in messages if one["method"]
            == "Network.requestWillBeSent"]

    def shape(self, width: int, height: int = 900, scheme: str = "light") -> None:
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        )
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self.settle(f"innerWidth === {width}")

    def drawn(self, plot: str) -> list[int]:
        """How many pixels of a canvas have each colour, most frequent first: what a picture shows,
        without its shape."""
        self.js(
            "document.querySelector(`figure[data-plot=\"${arguments[0]}\"]`).scrollIntoView({block: 'center'})",
            plot,
        )
        self.settle()
        return self.js(
            """const canvas = document.querySelector(`figure[data-plot="${arguments[0]}"] > canvas`);
            const pixels = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
            const counts = new Map();
            for (const one of pixels) counts.set(one, (counts.get(one) ?? 0) + 1);
            return [...counts.values()].sort((a, b) => b - a);""",
            plot,
        )

    def view(self) -> tuple[float, float]:
        return tuple(self.js("return [weirView.from, weirView.until]"))
