# SPDX-License-Identifier: Apache-2.0
# weir_add_test(<name> SOURCES a_test.cc ... [LINK target ...] [TIMEOUT seconds])
# One GoogleTest program and one ctest entry. Silent when WEIR_TESTS is off, so that rooms need no
# condition.
if(WEIR_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
endif()

function(weir_add_test name)
  if(NOT WEIR_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LINK" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300) # five times what a slow machine takes: a busy one starves programs
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/native")
  target_link_libraries(${name} PRIVATE ${arg_LINK} weir_warnings GTest::gtest GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT})
endfunction()
