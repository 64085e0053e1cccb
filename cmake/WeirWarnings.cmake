# SPDX-License-Identifier: Apache-2.0
# weir_warnings: the warnings every target of weir compiles with.
add_library(weir_warnings INTERFACE)
target_compile_options(weir_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra>
  $<$<COMPILE_LANGUAGE:Fortran>:-Wall -Wimplicit-interface>
  $<$<AND:$<BOOL:${WEIR_WERROR}>,$<COMPILE_LANGUAGE:C,CXX>>:-Werror>)

# weir_ordinary: C++20 with the standard library, for rooms outside a stranger's process.
add_library(weir_ordinary INTERFACE)
target_include_directories(weir_ordinary INTERFACE
  "${PROJECT_SOURCE_DIR}/native" "${WEIR_DECLARED}")
target_compile_features(weir_ordinary INTERFACE cxx_std_20)
target_compile_options(weir_ordinary INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fvisibility=hidden>)
target_link_libraries(weir_ordinary INTERFACE weir_warnings)
