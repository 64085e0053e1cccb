# SPDX-License-Identifier: Apache-2.0
# Where ccache is installed, objects that were compiled before are taken from it: by another clone,
# another build directory, or for the wheel. Paths below the source tree and the language of
# messages are no part of what it compares. Whoever chose a launcher keeps it.
find_program(WEIR_CCACHE ccache)
if(WEIR_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER AND NOT CMAKE_C_COMPILER_LAUNCHER)
  set(launcher "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_CURRENT_SOURCE_DIR}"
      CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=locale "${WEIR_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
