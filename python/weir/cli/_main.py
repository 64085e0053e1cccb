# SPDX-License-Identifier: Apache-2.0
"""``main()``: runs the app and alone decides what an error says and which status the command exits
with."""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress

from weir._errors import (
    Error,
    IncompleteError,
    InputError,
    InternalError,
    StorageError,
    UsageError,
)

FINE, FINDINGS, USAGE, BAD_INPUT, INCOMPLETE, INTERNAL = 0, 1, 2, 3, 4, 70
INTERRUPTED, PIPE_CLOSED = 130, 141

# What a write to standard output fails with where there is no room for it, or it is closed; files
# that weir opens itself have StorageError.
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)

_STATUS_OF: tuple[tuple[type[Error], int], ...] = (
    (UsageError, USAGE),
    (InputError, BAD_INPUT),
    (StorageError, BAD_INPUT),
    (IncompleteError, INCOMPLETE),
    (InternalError, INTERNAL),
)


def status_of(error: Error) -> int:
    """The exit status for an error of weir's own; what is of no known kind counts as bad input."""
    return next((status for kind, status in _STATUS_OF if isinstance(error, kind)), BAD_INPUT)


def _internal(error: BaseException) -> int:
    import traceback

    traceback.print_exception(error, file=sys.stderr)
    print("weir: an internal error of weir; please report it with the lines above", file=sys.stderr)
    return INTERNAL


def _unwritten(error: OSError) -> int:
    """The status when standard output takes nothing more: its reader went away, which is no news,
    or it is full."""
    if isinstance(error, BrokenPipeError):
        return PIPE_CLOSED
    print(f"weir: standard output cannot be written: {error.strerror or error}; what was printed "
          f"is not complete", file=sys.stderr)
    return BAD_INPUT


def _ended_by_pipe(end: SystemExit) -> bool:
    """Whether the app ended because of a closed pipe: it gives 1 then, which is the status of
    findings."""
    return isinstance(end.__context__, BrokenPipeError)


def _stand_in_for_closed_streams() -> None:
    """Keep the numbers 0 to 2 from weir's own files where the caller has closed them. What a
    command of weir prints is then an error, as of any program; the programs that weir starts find
    them closed."""
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while (opened := os.open(os.devnull, os.O_RDONLY)) <= 2:  # closed again on exec
        pass
    os.close(opened)
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115: writes fail
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115: of the whole run


def main() -> int:
    """Run the command line in sys.argv; the exit status. Never raises."""
    _stand_in_for_closed_streams()
    from weir.cli import _app

    if isinstance(sys.stdout, io.TextIOWrapper):
        # names of files need not be of the terminal's characters
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        _app.app_for(sys.argv[1:])(prog_name="weir")
        status = FINE
    except SystemExit as end:
        status = PIPE_CLOSED if _ended_by_pipe(end) else end.code if isinstance(end.code,
            int) else FINE if end.code is None else USAGE
    except Error as error:
        print(f"weir: {error}", file=sys.stderr)
        status = status_of(error)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except OSError as error:
        is_output = isinstance(error, BrokenPipeError) or (error.filename is None
            and error.errno in _UNWRITABLE)
        status = _unwritten(error) if is_output else _internal(error)
    except Exception as error:  # noqa: BLE001: whatever else comes out of it is a fault of weir
        status = _internal(error)
    try:
        sys.stdout.flush()
    except OSError as error:  # the interpreter would complain of it when it ends
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = status or _unwritten(error)
    return status
