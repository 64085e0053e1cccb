# SPDX-License-Identifier: Apache-2.0
# The dialect of code that lives in a stranger's process: C++20 without its run-time library.
# weir_dialect carries the compile flags; rooms link it. Only weir_dialect_shared() decides how the
# library is linked.
add_library(weir_dialect INTERFACE)
target_include_directories(weir_dialect INTERFACE "${PROJECT_SOURCE_DIR}/native" "${WEIR_DECLARED}")
target_compile_features(weir_dialect INTERFACE cxx_std_20)
target_compile_options(weir_dialect INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fno-threadsafe-statics
      -fvisibility-inlines-hidden>
  $<$<COMPILE_LANGUAGE:C,CXX>:-ftls-model=initial-exec -fvisibility=hidden -fno-plt>)
target_link_libraries(weir_dialect INTERFACE weir_warnings)

# weir_dialect_shared(<target> <version script>)
# Link a shared library of dialect objects with the C driver: anything that needs libstdc++ fails to
# link. Call it in the directory's own CMakeLists.txt: it empties that directory's list of C++
# libraries, which CMake would hand to the C driver.
function(weir_dialect_shared target version_script)
  target_link_libraries(${target} PRIVATE weir_dialect)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C LINK_DEPENDS "${version_script}")
  target_link_options(${target} PRIVATE
    -Wl,-z,nodelete -Wl,-z,defs -Wl,-z,now -Wl,--as-needed "-Wl,--version-script=${version_script}")
  set(CMAKE_CXX_IMPLICIT_LINK_LIBRARIES "" PARENT_SCOPE)
endfunction()
