# SPDX-License-Identifier: Apache-2.0
"""From the word behind --dask to a cluster that answers: `local`, or a scheduler's address."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weir import __version__
from weir._errors import UsageError
from weir.cluster.cluster import Cluster, ClusterError

if TYPE_CHECKING:
    from distributed import Client

LOCAL = "local"
_LOCAL_SETTINGS = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # With Dask's own of 64 KiB glibc gives back and faults in each array anew: half of the time of
    # waits.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 256 << 20,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 32 << 20,
}
# a busy machine's "Event loop was unresponsive" is no news of the run
_LOGGING = {"distributed": "error", "distributed.client": "error"}
SECONDS = 15  # for a scheduler to answer, and for a first worker to be there


def connect(where: str, *, workers: int | None = None, seconds: float = SECONDS) -> Cluster:
    """local: `workers` processes of this machine (one for each core), gone with the cluster; else
    the address of a scheduler, as tcp://host:8786 or the file that it wrote with --scheduler-file.

    Raises UsageError when dask is not installed, ClusterError when nothing answers within `seconds`
    or a worker has no such weir.
    """
    try:
        import dask

        # heard when it is imported first: a program that has done so keeps its own
        with dask.config.set({"logging": _LOGGING}):
            import distributed
    except ImportError as error:
        raise UsageError(
            f"--dask {where}: dask.distributed is not installed ({error}); pip install "
            f"'weir-io[dask]'") from error

    with dask.config.set(_LOCAL_SETTINGS if where == LOCAL else {}):
        client, close = _local(distributed, workers) if where == LOCAL else _remote(distributed,
            where, seconds)
    try:
        _check_workers(client, where, seconds)
    except BaseException:
        close()
        raise
    return Cluster(client, close)


def _local(distributed: Any, workers: int | None) -> tuple[Client, Callable[[], None]]:
    """Encrypted and with certificates of its own: whoever may speak to a scheduler may run anything
    as its user."""
    cluster = distributed.LocalCluster(
        n_workers=workers or len(os.sched_getaffinity(0)), threads_per_worker=1, processes=True,
        security=True, silence_logs=50,
        dashboard_address=None, scheduler_kwargs={"dashboard": False,
            "dashboard_address": "127.0.0.1:0"},
    )  # fmt: skip
    client = distributed.Client(cluster, set_as_default=False)

    def close() -> None:
        client.close()
        cluster.close()

    return client, close


def _remote(distributed: Any, where: str, seconds: float) -> tuple[Client, Callable[[], None]]:
    is_file = os.path.isfile(where)
    try:
        # Not the default of the process: one that failed would stay it, for other libraries, too.
        client = distributed.Client(**{"scheduler_file" if is_file else "address": where},
            timeout=seconds, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterError(
            f"--dask {where}: no scheduler answers there within {seconds:g} s ({error}); name one "
            f"as tcp://host:8786, the file that "
            f"`dask scheduler --scheduler-file` wrote, or {LOCAL}"
        ) from error
    return client, client.close


def _check_workers(client: Client, where: str, seconds: float) -> None:
    """At least one, and every one has this weir: answers are to be the same wherever they are made.
    """
    try:
        client.wait_for_workers(1, timeout=seconds)
    except TimeoutError as error:
        raise ClusterError(
            f"--dask {where}: the scheduler has no workers; start some: dask worker "
            f"{client.scheduler.address}") from error
    versions = client.run(_version, on_error="return")
    for address, found in versions.items():
        if isinstance(found, BaseException):
            raise ClusterError(
                f"--dask {where}: worker {address} cannot import weir: {found}; install weir-io "
                f"{__version__} there") from found
        if found != __version__:
            raise ClusterError(
                f"--dask {where}: worker {address} has weir {found}, this is {__version__}: "
                f"install the same there")


def _version() -> str:
    import weir.analysis.step  # noqa: F401: what workers are asked for
    import weir.trace

    weir.trace.OPS.load()  # the native reader is there
    return __version__
