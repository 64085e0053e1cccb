# SPDX-License-Identifier: Apache-2.0
# What is made from native/layers/*/layer.toml (tools/layers.py): C++ declarations in WEIR_DECLARED,
# the lists of layers WEIR_LAYERS and WEIR_STATIC_LAYERS (directories of native/), and layers.json
# for the Python package. CMake runs again when a declaration is added or changed.
set(WEIR_DECLARED "${PROJECT_BINARY_DIR}/declared")
file(GLOB declarations CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/native/layers/*/layer.toml"
  "${PROJECT_SOURCE_DIR}/native/layers/*/shared.toml")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${declarations} "${PROJECT_SOURCE_DIR}/tools/layers.py")

# The first Python that can read TOML: 3.11, or 3.10 with tomli.
set(candidates ${Python3_EXECUTABLE} ${Python_EXECUTABLE} $ENV{WEIR_PYTHON}
  "${PROJECT_SOURCE_DIR}/.venv/bin/python" python3 /usr/bin/python3 python3.14 python3.13 python3.12
  python3.11 python3.10)
set(python "")
foreach(candidate ${candidates})
  execute_process(
    COMMAND "${candidate}" -c "import sys\nif sys.version_info < (3, 11): import tomli"
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(status STREQUAL "0")
    set(python "${candidate}")
    break()
  endif()
endforeach()
if(NOT python)
  message(FATAL_ERROR "weir's build needs Python 3.11 or newer, or 3.10 with tomli, to read "
    "native/layers/*/layer.toml: install python3, or name one by -DPython3_EXECUTABLE=...")
endif()
execute_process(COMMAND "${python}" "${PROJECT_SOURCE_DIR}/tools/layers.py" "${WEIR_DECLARED}"
  RESULT_VARIABLE status ERROR_VARIABLE mistake ERROR_STRIP_TRAILING_WHITESPACE)
if(NOT status STREQUAL "0")
  message(FATAL_ERROR "${mistake}")
endif()
include("${WEIR_DECLARED}/layers.cmake")
