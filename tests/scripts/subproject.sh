#!/bin/sh
# SPDX-License-Identifier: MIT
# weft inside another CMake project, with add_subdirectory() and with FetchContent: the parent
# gets the library under its installed names and nothing else, and keeps its own settings.
# Usage: subproject.sh SOURCE_DIR [CMAKE_FLAGS...]
set -eu
source=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/parent"
cat >"$work/parent/program.c" <<'C'
#include <weft.h>
static int app(void *arg)
{
    (void)arg;
    return weft_sleep(WEFT_MS);
}
int main(void)
{
    return weft_run(NULL, app, NULL) == 0 ? 0 : 1;
}
C
echo 'int main(void) { return 0; }' >"$work/parent/own.c"
# OWN: the parent has targets with the names of weft's examples. FETCH: uses FetchContent.
cat >"$work/parent/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.16)
project(parent LANGUAGES C)
enable_testing()
if(OWN)
    foreach(name echo du http tour bench)
        add_executable(${name} own.c)
    endforeach()
endif()
get_cmake_property(variables_before VARIABLES)
foreach(name ${variables_before})
    set(before_${name} "${${name}}")
endforeach()
get_cmake_property(cache_before CACHE_VARIABLES)
if(FETCH)
    include(FetchContent)
    FetchContent_Declare(weft SOURCE_DIR ${WEFT})
    FetchContent_MakeAvailable(weft)
else()
    add_subdirectory(${WEFT} weft)
endif()
add_executable(app_shared program.c)
target_link_libraries(app_shared PRIVATE weft::weft)
add_executable(app_static program.c)
target_link_libraries(app_static PRIVATE weft::weft_static)

# Only the parent's own settings: no variable that controls a build has changed.
foreach(name BUILD_TYPE C_FLAGS C_FLAGS_DEBUG C_STANDARD C_EXTENSIONS C_VISIBILITY_PRESET
        POSITION_INDEPENDENT_CODE EXPORT_COMPILE_COMMANDS EXE_LINKER_FLAGS)
    if(NOT "${CMAKE_${name}}" STREQUAL "${before_CMAKE_${name}}")
        message(FATAL_ERROR "CMAKE_${name} became '${CMAKE_${name}}'")
    endif()
endforeach()
foreach(property COMPILE_OPTIONS COMPILE_DEFINITIONS INCLUDE_DIRECTORIES LINK_OPTIONS)
    get_directory_property(value ${property})
    if(value)
        message(FATAL_ERROR "the parent's ${property} became '${value}'")
    endif()
endforeach()
get_cmake_property(cache_after CACHE_VARIABLES)
list(REMOVE_ITEM cache_after ${cache_before})
list(FILTER cache_after INCLUDE REGEX "^BUILD_|^CMAKE_(INSTALL|BUILD|C|CXX|EXPORT|POSITION)_|^THREADS")
if(cache_after AND NOT WEFT_INSTALL) # GNUInstallDirs caches its settings.
    message(FATAL_ERROR "new settings in the parent's cache: ${cache_after}")
endif()

# Lists every target of weft, in all of its folders.
function(list_targets folder result)
    get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
    get_property(tests DIRECTORY ${folder} PROPERTY TESTS)
    if(tests)
        message(FATAL_ERROR "tests of weft in the parent: ${tests}")
    endif()
    get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
    foreach(one ${folders})
        list_targets(${one} more)
        list(APPEND targets ${more})
    endforeach()
    set(${result} ${targets} PARENT_SCOPE)
endfunction()
list_targets(${WEFT} targets)
foreach(target ${targets})
    if(NOT target MATCHES "^weft")
        message(FATAL_ERROR "a target of weft without a prefix: ${target}")
    endif()
    if(NOT ALL_OF_WEFT AND NOT target MATCHES "^weft(_static|_objects|_flags)?$")
        message(FATAL_ERROR "more than the library: ${target}")
    endif()
endforeach()
CMAKE

configure() { # build folder, flags...
    folder=$1
    shift
    cmake -S "$work/parent" -B "$work/$folder" -DWEFT="$source" "$@" >"$work/log" 2>&1 || {
        cat "$work/log"
        echo "configure failed: $folder $*"
        exit 1
    }
}
build_type() { sed -n 's/^CMAKE_BUILD_TYPE:[A-Z]*=//p' "$work/$1/CMakeCache.txt"; }

# With a build type; first without targets of the same names, then with them.
configure debug -DCMAKE_BUILD_TYPE=Debug "$@"
[ "$(build_type debug)" = Debug ]
cmake --build "$work/debug" -j 2 -- --no-print-directory -s
"$work/debug/app_shared"
"$work/debug/app_static"
configure debug -DOWN=ON "$@"
cmake --build "$work/debug" -j 2 --target echo du app_shared -- --no-print-directory -s
"$work/debug/echo"
"$work/debug/app_shared"

# Without a build type, none is set; and nothing of weft is installed.
configure plain "$@"
[ -z "$(build_type plain)" ]
if grep 'file(INSTALL' "$work/plain/weft/cmake_install.cmake"; then
    exit 1
fi

# With FetchContent; and when the parent enables more, with targets of the same names.
configure fetched -DFETCH=ON "$@"
configure more -DOWN=ON -DALL_OF_WEFT=ON -DWEFT_BUILD_EXAMPLES=ON -DWEFT_BUILD_BENCH=ON "$@"
configure installing -DALL_OF_WEFT=ON -DWEFT_INSTALL=ON -DFETCH=ON "$@"
grep -q 'libweft' "$work/installing/_deps/weft-build/cmake_install.cmake"
if cmake -S "$work/parent" -B "$work/tests" -DWEFT="$source" -DWEFT_BUILD_TESTS=ON "$@" >"$work/log" 2>&1; then
    echo "tests of weft in another project are to be refused"
    exit 1
fi
grep -q 'WEFT_BUILD_TESTS' "$work/log"
echo "ok: the library only, by add_subdirectory() and FetchContent"
