# SPDX-License-Identifier: Apache-2.0
"""``weir doctor``: what can be traced on this machine and of a given program, said before the run.
"""

from weir.capture.doctor._finding import FINDING, FINE, NOTE, Finding, any_findings
from weir.capture.doctor._machine import examine_machine
from weir.capture.doctor._program import examine_program

__all__ = ["FINDING", "FINE", "NOTE", "Finding", "any_findings", "examine_machine",
    "examine_program"]
