#!/bin/sh
# SPDX-License-Identifier: MIT
# The installed library is usable with pkg-config and CMake, static and shared, from C and from
# C++. The program is the one in the README.
# Usage: install.sh BUILD_DIR SOURCE_DIR
set -eu
build=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

# The loader's cache: a fake ldconfig records its calls, and a fake id determines the user.
mkdir "$work/bin"
cat >"$work/bin/ldconfig" <<SH
#!/bin/sh
echo "\$*" >>"$work/calls"
[ "\$*" != -p ] || cat "$work/cache"
SH
cat >"$work/bin/id" <<SH
#!/bin/sh
echo "\${FAKE_ID:-0}"
SH
chmod +x "$work/bin/ldconfig" "$work/bin/id"
export PATH="$work/bin:$PATH"

# install_as NAME PREFIX [VARIABLE=VALUE...]: installs, with the output in $work/NAME.
install_as() {
    name=$1
    to=$2
    shift 2
    : >"$work/calls"
    env "$@" cmake --install "$build" --prefix "$to" >"$work/$name"
}

# As root: ldconfig runs. If the loader still does not find the library, the output says so.
: >"$work/cache"
install_as root "$prefix"
lib=$(dirname "$(find "$prefix" -name libweft.so)")
[ "$(cat "$work/calls")" = "
-p" ]
grep -q "does not search $lib" "$work/root"
so=$(basename "$(find "$lib" -name 'libweft.so.*.*.*')")
echo "	${so%.*} (libc6,x86-64) => $lib/${so%.*}" >"$work/cache"
install_as root "$prefix"
[ "$(cat "$work/calls")" = "
-p" ]
if grep -e 'ldconfig' -e 'does not search' "$work/root"; then
    exit 1
fi

# As another user, or into a staging folder: ldconfig is not run but mentioned, and nothing is
# written outside of the folder.
install_as user "$work/user_prefix" FAKE_ID=1000
[ ! -s "$work/calls" ]
grep -q 'run as root: ldconfig$' "$work/user"
install_as staged /nowhere/usr DESTDIR="$work/staging"
[ ! -s "$work/calls" ]
grep -q 'run as root: ldconfig$' "$work/staged"
[ -n "$(find "$work/staging/nowhere/usr" -name libweft.so)" ]
[ ! -e /nowhere ]
pc=$(find "$prefix" -name weft.pc)
lib=$(dirname "$(dirname "$pc")")

# The first C program of the README.
awk '/^```c$/ {on = 1; next} /^```$/ {if (on) exit} on' "$source/README.md" >"$work/program.c"
[ -s "$work/program.c" ]
grep -q 'int main' "$work/program.c"

# weft.pc has the configured prefix; this copy is installed elsewhere.
sed -i "s|^prefix=.*|prefix=$prefix|" "$pc"
export PKG_CONFIG_PATH="$lib/pkgconfig"
# shellcheck disable=SC2046
cc -std=c11 -Wall -Wextra -Werror "$work/program.c" -o "$work/by_pkgconfig" $(pkg-config --cflags --libs weft)
LD_LIBRARY_PATH=$lib "$work/by_pkgconfig"
# shellcheck disable=SC2046
cc -std=c11 "$work/program.c" -o "$work/by_static" $(pkg-config --cflags weft) "$lib/libweft.a" $(sed -n "s/^Libs.private: //p" "$pc")
"$work/by_static"
[ "$(pkg-config --modversion weft)" = "$(sed -n 's/.*WEFT_VERSION_STRING "\(.*\)"/\1/p' "$source/include/weft/base.h")" ]

# The library's flags catch a frame that is larger than stack and guard.
overflows() {
    if "$@" 2>"$work/said"; then
        echo "a frame of 600 KiB fits into a stack of 256 KiB: $*"
        exit 1
    fi
    grep -q "stack overflow in fiber 'large'" "$work/said"
}
# shellcheck disable=SC2046
cc -std=c11 -D_GNU_SOURCE "$source/tests/programs/large_frame.c" -o "$work/large_frame" $(pkg-config --cflags --libs weft)
overflows env LD_LIBRARY_PATH="$lib" "$work/large_frame"

mkdir "$work/cmake"
cp "$source/tests/programs/large_frame.c" "$work/cmake"
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
add_executable(large_frame large_frame.c)
target_link_libraries(large_frame PRIVATE weft::weft)
add_executable(large_frame_static large_frame.c)
target_link_libraries(large_frame_static PRIVATE weft::weft_static)
CMAKE
cat >"$work/cmake/main.cpp" <<'CXX'
#include <weft.h>
static int app(void *) { return weft_runtime_workers(weft_runtime_current()) > 0 ? 0 : 1; }
int main() { return weft_run(nullptr, app, nullptr) == 0 ? 0 : 1; }
CXX
cmake -S "$work/cmake" -B "$work/cmake/build" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$work/cmake/build" >/dev/null
"$work/cmake/build/shared"
"$work/cmake/build/static"
"$work/cmake/build/cxx"
overflows "$work/cmake/build/large_frame"
overflows "$work/cmake/build/large_frame_static"

# The shared library has a SONAME, and the unversioned name is a link to it.
readelf -d "$lib/libweft.so" | grep -q 'SONAME.*libweft.so.0'
[ -L "$lib/libweft.so" ]
echo "ok: installed, and used by pkg-config and CMake, C and C++"
