# SPDX-License-Identifier: Apache-2.0
"""``weir wrap-flags``"""

from __future__ import annotations


def wrap_flags() -> None:
    """Print the options with which a static program is linked: cc -static model.o $(weir
    wrap-flags).

    Nothing can be preloaded into a static program, therefore the hooks are linked into it. They do
    nothing until weir trace or weir env starts the program. Put the options after the program's own
    objects and libraries.
    """
    import sys

    from weir import _native

    archive, flags = _native.library_path(_native.WRAP), _native.library_path(_native.WRAP_FLAGS)
    sys.stdout.write(f"-Wl,--whole-archive {archive} -Wl,--no-whole-archive @{flags}\n")
