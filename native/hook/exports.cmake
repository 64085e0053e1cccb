# SPDX-License-Identifier: Apache-2.0
# Version script of the preload library: the hooks of table.def, the function that libweir looks for (output.cc), and nothing else. cmake -DTABLE= -DOUT= -P exports.cmake
file(STRINGS "${TABLE}" rows REGEX "^WEIR_HOOKED\\(")
set(text "{\n  global:\n")
foreach(row ${rows})
  string(REGEX REPLACE "^WEIR_HOOKED\\(([A-Za-z0-9_]+),.*$" "\\1" symbol "${row}")
  string(APPEND text "    ${symbol};\n")
endforeach()
string(APPEND text "    weir_output_event;\n  local: *;\n};\n")
file(WRITE "${OUT}" "${text}")
