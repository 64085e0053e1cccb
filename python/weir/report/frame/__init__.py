# SPDX-License-Identifier: Apache-2.0
"""What all subjects stand on: the report as its steps and columns, how tables, sentences and
sections are made."""
