# SPDX-License-Identifier: Apache-2.0
"""The codes of include/weir/status.h as exceptions."""

from __future__ import annotations

from weir._errors import Error


class OutputError(Error):
    """What libweir reports; ``code`` is the weir_status, ``name`` its name."""

    code = 12
    name = "WEIR_E_INTERNAL"


class ArgumentError(OutputError, ValueError):
    code, name = 1, "WEIR_E_ARGUMENT"


class ConfigError(OutputError, ValueError):
    code, name = 2, "WEIR_E_CONFIG"


class OrderError(OutputError, RuntimeError):
    code, name = 3, "WEIR_E_ORDER"


class DecompositionError(OutputError, ValueError):
    code, name = 4, "WEIR_E_DECOMPOSITION"


class MissingError(OutputError, RuntimeError):
    code, name = 5, "WEIR_E_MISSING"


class FileError(OutputError, OSError):
    code, name = 6, "WEIR_E_FILE"


class FormatError(OutputError, ValueError):
    code, name = 7, "WEIR_E_FORMAT"


class OutputMemoryError(OutputError, MemoryError):
    code, name = 8, "WEIR_E_MEMORY"


class RemoteError(OutputError, OSError):
    code, name = 9, "WEIR_E_REMOTE"


class LostError(OutputError, RuntimeError):
    code, name = 10, "WEIR_E_LOST"


class MpiError(OutputError, RuntimeError):
    code, name = 11, "WEIR_E_MPI"


class ValueLostError(OutputError, ValueError):
    code, name = 13, "WEIR_E_VALUE"


BY_CODE = {
    kind.code: kind
    for kind in (
        ArgumentError, ConfigError, OrderError, DecompositionError, MissingError, FileError,
        FormatError, OutputMemoryError, RemoteError,
        LostError, MpiError, ValueLostError,
    )
}  # fmt: skip


def error_of(code: int, message: str) -> OutputError:
    """The exception of a weir_status."""
    return BY_CODE.get(code, OutputError)(message)
