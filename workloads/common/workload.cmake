# SPDX-License-Identifier: Apache-2.0
# weir_mpi_workload(name SOURCES ... [LIBRARIES ...] [MORE_openmpi ...] [MORE_mpich ...] [NEEDS
# header] [WRITES_THROUGH_WEIR]): a program of a few files, built once with each MPI that is
# installed, as <build>/workloads/<name>/{openmpi,mpich}/weir-<name>. The compiler wrapper is called
# as a user calls it, so that the program is an ordinary one; sources ending in .f90 choose the
# Fortran wrapper. MORE_: flags, sources and libraries of one MPI's program alone.
# WRITES_THROUGH_WEIR: linked with the output library.
include_guard()
set(WEIR_WORKLOAD_COMMON ${CMAKE_CURRENT_LIST_DIR})

function(weir_mpi_workload name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "WRITES_THROUGH_WEIR" "NEEDS"
      "SOURCES;LIBRARIES;MORE_openmpi;MORE_mpich")
  enable_language(C) # find_path looks into the multiarch directories only when a compiler is known
  set(fortran FALSE)
  foreach(source ${arg_SOURCES})
    list(APPEND sources ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    if(source MATCHES "\\.f90$")
      set(fortran TRUE)
    endif()
  endforeach()
  set(flags -O2 -Wall -Wextra)
  if(fortran)
    set(wrapper mpifort)
    list(APPEND flags -std=f2018 -Wno-maybe-uninitialized -Wno-compare-reals)
  else()
    set(wrapper mpicc)
    list(APPEND flags -std=c11 -D_GNU_SOURCE -I${WEIR_WORKLOAD_COMMON}
        -I${WEIR_WORKLOAD_COMMON}/../../include)
    list(APPEND sources ${WEIR_WORKLOAD_COMMON}/workload.c)
    file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
    list(APPEND headers ${WEIR_WORKLOAD_COMMON}/workload.h)
  endif()
  if(arg_NEEDS)
    find_path(WEIR_INCLUDE_${arg_NEEDS} ${arg_NEEDS})
    if(NOT WEIR_INCLUDE_${arg_NEEDS})
      message(STATUS "workload ${name}: not built (needs ${arg_NEEDS})")
      return()
    endif()
  endif()
  foreach(mpi openmpi mpich)
    find_program(WEIR_${wrapper}_${mpi} ${wrapper}.${mpi})
    if(NOT WEIR_${wrapper}_${mpi})
      message(STATUS "workload ${name}: not built for ${mpi} (needs ${wrapper}.${mpi})")
      continue()
    endif()
    set(directory ${CMAKE_CURRENT_BINARY_DIR}/${mpi})
    file(MAKE_DIRECTORY ${directory})
    set(modules)
    if(fortran)
      set(modules -J${directory})
    endif()
    set(weir)
    set(needs ${arg_MORE_${mpi}})
    list(FILTER needs INCLUDE REGEX "\\.c$")
    if(arg_WRITES_THROUGH_WEIR)
      if(NOT TARGET weir_fortran_${mpi})
        message(STATUS "workload ${name}: not built for ${mpi} (needs libweir)")
        continue()
      endif()
      set(library ${PROJECT_BINARY_DIR}/lib/${mpi})
      set(weir -I${library} -L${library} -lweirf -lweir -Wl,-rpath,${library})
      list(APPEND needs weir_fortran_${mpi} ${library}/libweirf.so)
    endif()
    add_custom_command(OUTPUT ${directory}/weir-${name}
      COMMAND ${WEIR_${wrapper}_${mpi}} ${flags} ${modules} -o weir-${name} ${sources}
          ${arg_MORE_${mpi}} ${arg_LIBRARIES} ${weir}
      DEPENDS ${sources} ${headers} ${needs} WORKING_DIRECTORY ${directory} COMMENT
          "weir-${name} with ${mpi}" VERBATIM)
    add_custom_target(weir_${name}_${mpi} ALL DEPENDS ${directory}/weir-${name})
  endforeach()
endfunction()
