# SPDX-License-Identifier: Apache-2.0
# Version script of the preload library: the hooks of table.def for libc, the functions that libweir and phase.h look for (output.cc, phase.cc), and nothing else. cmake -DTABLE= -DOUT= -P exports.cmake
file(STRINGS "${TABLE}" rows REGEX "^WEIR_HOOKED\\([A-Za-z0-9_]+, *c,")
set(text "{\n  global:\n")
foreach(row ${rows})
  string(REGEX REPLACE "^WEIR_HOOKED\\(([A-Za-z0-9_]+),.*$" "\\1" symbol "${row}")
  string(APPEND text "    ${symbol};\n")
endforeach()
string(APPEND text "    weir_output_event;\n    weir_phase_event;\n  local: *;\n};\n")
file(WRITE "${OUT}" "${text}")
