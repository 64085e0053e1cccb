# SPDX-License-Identifier: Apache-2.0
"""Rules tested on a program: ``weir tune`` runs a command plain and with the rules of its findings,
in turn, and compares outputs, requests and seconds."""
