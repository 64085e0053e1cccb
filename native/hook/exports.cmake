# SPDX-License-Identifier: Apache-2.0
# Version script of the preload library: the hooks of table.def for libc but those of newer.def, the
# functions that libweir and phase.h look for (output.cc, phase.cc), and nothing else. cmake
# -DTABLE= -DOUT= -P exports.cmake
cmake_minimum_required(VERSION 3.22)
file(STRINGS "${TABLE}" rows REGEX "^WEIR_HOOKED\\([A-Za-z0-9_]+, *c,")
cmake_path(REPLACE_FILENAME TABLE newer.def OUTPUT_VARIABLE list)
file(STRINGS "${list}" newer REGEX "^WEIR_NEWER\\(")
list(TRANSFORM newer REPLACE "^WEIR_NEWER\\((.+)\\)" "\\1")
set(text "{\n  global:\n")
foreach(row ${rows})
  string(REGEX REPLACE "^WEIR_HOOKED\\(([A-Za-z0-9_]+),.*$" "\\1" symbol "${row}")
  if(symbol IN_LIST newer)
    continue()
  endif()
  string(APPEND text "    ${symbol};\n")
endforeach()
string(APPEND text "    weir_output_event;\n    weir_phase_event;\n  local: *;\n};\n")
file(WRITE "${OUT}" "${text}")
