# SPDX-License-Identifier: Apache-2.0
"""Rules: which files get which layers, written in TOML, by ``weir assign`` or as IOBUF_PARAMS.

All of a run's rules are read, checked and compiled here before it starts; the preload library gets
one text (WEIR_RULES). Importing this package imports nothing that is slow.
"""
