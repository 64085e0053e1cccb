# SPDX-License-Identifier: Apache-2.0
"""Benches that users run: the four cases of the reference, and what each layer gains and costs.

Programs run as a user runs them, plain and under ``weir run``, interleaved, on the project's test
file system, which counts the requests. The programs are built with the source tree; layers, rules
and the file system are other rooms' business.
"""
