# SPDX-License-Identifier: Apache-2.0
"""The forms that rules are written in: TOML, assign's file, IOBUF_PARAMS; and the one the preload
library reads."""
