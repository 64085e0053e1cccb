# SPDX-License-Identifier: Apache-2.0
"""The command ``weir``: verbs, options, and the one place where errors become messages and exit
statuses."""

__all__ = ["main"]


def main() -> int:
    """Run the command line in sys.argv; the exit status. Never raises: what it needs is imported
    here, as an interrupt may come meanwhile."""
    try:
        from weir.cli import _main

        return _main.main()
    except KeyboardInterrupt:
        return 130  # _main.INTERRUPTED, which may not be imported
