# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.22)
# What the wrap archive stands in front of: the rows of table.def for libc whose function this
# machine's libc.a has. cmake -DTABLE= -DARCHIVE= -DNM= -DEXCLUDED= -DHEADER= -DFLAGS= -P
# symbols.cmake HEADER: for each row the real function, or one that fails. FLAGS: the linker's
# options, one a line.
file(STRINGS "${TABLE}" rows REGEX "^WEIR_HOOKED\\(")
execute_process(COMMAND "${NM}" --defined-only --extern-only --format=posix "${ARCHIVE}"
    OUTPUT_VARIABLE listed ERROR_QUIET)
string(REGEX MATCHALL "[A-Za-z0-9_]+ [TWiV] " found "${listed}")
list(TRANSFORM found REPLACE " .*" "")

set(header "// Made by native/preload/wrap/symbols.cmake.\n")
set(flags "")
foreach(row ${rows})
  string(REGEX REPLACE "^WEIR_HOOKED\\(([A-Za-z0-9_]+), ([a-z0-9]+),.*$" "\\1;\\2" parts "${row}")
  list(GET parts 0 symbol)
  list(GET parts 1 library)
  if(NOT library STREQUAL "c")
    continue()
  endif()
  if(symbol IN_LIST found AND NOT symbol IN_LIST EXCLUDED)
    string(APPEND header "#define WEIR_LINKED_${symbol}(it) real_of_${symbol}\n")
    string(APPEND flags "-Wl,--wrap=${symbol}\n")
  else()
    string(APPEND header
        "#define WEIR_LINKED_${symbol}(it) reinterpret_cast<decltype(&it)>(reinterpret_cast<void*>(weir::hook::missing))\n")
  endif()
endforeach()
file(WRITE "${HEADER}" "${header}")
file(WRITE "${FLAGS}" "${flags}")
