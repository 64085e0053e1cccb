# SPDX-License-Identifier: Apache-2.0
"""Interleaving: each rank reads and writes its files in order; what does a file system see of that
when several ranks of a node do so at the same time?"""
