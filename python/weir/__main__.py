# SPDX-License-Identifier: Apache-2.0
"""``python -m weir`` is the command ``weir``."""

import sys

from weir.cli import main

if __name__ == "__main__":
    sys.exit(main())
