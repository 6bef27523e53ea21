# SPDX-License-Identifier: MIT
# What each fuzz target is made of: its own file, and those that it tries.
set(fuzz ${PROJECT_SOURCE_DIR}/fuzz)
set(fuzz_includes ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
    ${PROJECT_SOURCE_DIR}/examples)
set(fuzz_targets address place http resp reader)
set(fuzz_address_sources ${fuzz}/address.c ${PROJECT_SOURCE_DIR}/src/net/address.c)
set(fuzz_place_sources ${fuzz}/place.c ${PROJECT_SOURCE_DIR}/src/net/address.c)
set(fuzz_http_sources ${fuzz}/http.c ${PROJECT_SOURCE_DIR}/examples/http_parser.c)
set(fuzz_resp_sources ${fuzz}/resp.c ${PROJECT_SOURCE_DIR}/examples/resp.c)
set(fuzz_reader_sources ${fuzz}/reader.c ${PROJECT_SOURCE_DIR}/src/net/reader.c
    ${PROJECT_SOURCE_DIR}/src/base/assert.c)
