#!/bin/sh
# SPDX-License-Identifier: MIT
# The installed library can be used: by pkg-config, by CMake, static and shared,
# from C and from C++. The README's program is the one that is compiled.
# Usage: install.sh BUILD_DIR SOURCE_DIR
set -eu
build=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
cmake --install "$build" --prefix "$prefix" >/dev/null
pc=$(find "$prefix" -name weft.pc)
lib=$(dirname "$(dirname "$pc")")

# The first C program of the README.
awk '/^```c$/ {on = 1; next} /^```$/ {if (on) exit} on' "$source/README.md" >"$work/program.c"
[ -s "$work/program.c" ]
grep -q 'int main' "$work/program.c"

# weft.pc names the configured prefix; this copy is installed elsewhere.
sed -i "s|^prefix=.*|prefix=$prefix|" "$pc"
export PKG_CONFIG_PATH="$lib/pkgconfig"
# shellcheck disable=SC2046
cc -std=c11 -Wall -Wextra -Werror "$work/program.c" -o "$work/by_pkgconfig" $(pkg-config --cflags --libs weft)
LD_LIBRARY_PATH=$lib "$work/by_pkgconfig"
# shellcheck disable=SC2046
cc -std=c11 "$work/program.c" -o "$work/by_static" $(pkg-config --cflags weft) "$lib/libweft.a" $(sed -n "s/^Libs.private: //p" "$pc")
"$work/by_static"
[ "$(pkg-config --modversion weft)" = "$(sed -n 's/.*WEFT_VERSION_STRING "\(.*\)"/\1/p' "$source/include/weft/base.h")" ]

mkdir "$work/cmake"
cat >"$work/cmake/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.16)
project(consumer C CXX)
find_package(weft 0.1 REQUIRED)
add_executable(shared ../program.c)
target_link_libraries(shared PRIVATE weft::weft)
add_executable(static ../program.c)
target_link_libraries(static PRIVATE weft::weft_static)
add_executable(cxx main.cpp)
target_link_libraries(cxx PRIVATE weft::weft)
CMAKE
cat >"$work/cmake/main.cpp" <<'CXX'
#include <weft.h>
static int app(void *) { return weft_runtime_workers(weft_runtime_current()) > 0 ? 0 : 1; }
int main() { return weft_run(nullptr, app, nullptr); }
CXX
cmake -S "$work/cmake" -B "$work/cmake/build" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$work/cmake/build" >/dev/null
"$work/cmake/build/shared"
"$work/cmake/build/static"
"$work/cmake/build/cxx"

# The shared library has a SONAME, and the unversioned name is a link to it.
readelf -d "$lib/libweft.so" | grep -q 'SONAME.*libweft.so.0'
[ -L "$lib/libweft.so" ]
echo "ok: installed, and used by pkg-config and CMake, C and C++"
