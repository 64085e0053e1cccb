# SPDX-License-Identifier: Apache-2.0
"""The stacks whose runs must be those without layers, in the compiled form of rules. Blocks are small, so that files have many."""

PASSING = "delay:op=any:us=1:jitter_us=0:rate=1:seed=1|system"
STACKS = {
    "trace": "",
    "passing": PASSING,
    "bufa-small": "bufa:4096:2:always=1|system",
    "bufa": "bufa:65536:4|system",
    "gather": "gather:65536:4:always=1|system",
    "global": "global:65536:4:always=1|system",
    "bufa-events": "event|bufa:8192:3:always=1|event|system",
}
TRACED = ("trace", "bufa-events")
