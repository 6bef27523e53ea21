# SPDX-License-Identifier: MIT
# Runs at the end of an installation. Updates the loader's cache, so that programs find
# libweft.so, or prints the remaining steps. Needs weft_libdir and weft_soname.
execute_process(COMMAND id -u OUTPUT_VARIABLE user OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT "$ENV{DESTDIR}" STREQUAL "" OR NOT user STREQUAL "0")
    message(STATUS "To let programs find ${weft_soname}, run as root: ldconfig")
    return()
endif()
find_program(ldconfig ldconfig PATHS /usr/sbin /sbin)
if(NOT ldconfig) # musl has no cache: its loader searches the folders.
    return()
endif()
execute_process(COMMAND ${ldconfig} RESULT_VARIABLE result)
execute_process(COMMAND ${ldconfig} -p OUTPUT_VARIABLE cache)
string(FIND "${cache}" "=> ${weft_libdir}/${weft_soname}" at)
if(NOT result EQUAL 0)
    message(WARNING "ldconfig failed: ${result}")
elseif(at EQUAL -1)
    message(STATUS "The loader does not search ${weft_libdir}: link programs with "
                   "-Wl,-rpath,${weft_libdir}, or run them with LD_LIBRARY_PATH=${weft_libdir}")
endif()
