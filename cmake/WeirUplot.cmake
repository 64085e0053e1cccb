# SPDX-License-Identifier: Apache-2.0
# uPlot for the pages of `weir report --html`: fetched once per build directory, carried by the
# Python package (docs/decisions/0017).
set(directory "${CMAKE_BINARY_DIR}/uplot")
set(files "${directory}/uPlot.iife.min.js" "${directory}/uPlot.min.css"
    "${directory}/uPlot.LICENSE")
add_custom_command(OUTPUT ${files}
  COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/tools/fetch-uplot" "${directory}"
  DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/tools/fetch-uplot"
  COMMENT "uPlot" VERBATIM)
add_custom_target(weir_uplot ALL DEPENDS ${files})
add_dependencies(weir_python weir_uplot)
install(FILES ${files} DESTINATION weir/_lib COMPONENT python OPTIONAL)
