# SPDX-License-Identifier: Apache-2.0
"""Launching programs under the preload library, and saying beforehand what it will see.

Run directories, the environment of the library, ``weir trace``, ``weir env`` and ``weir doctor``;
what the trace says is left to trace, analysis and report. Importing this package imports nothing
that is slow.
"""
