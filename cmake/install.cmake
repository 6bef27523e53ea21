# SPDX-License-Identifier: MIT
# What `make install` puts where: libraries, headers, pkg-config and CMake files.
include(CMakePackageConfigHelpers)

set(weft_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weft)

install(TARGETS weft weft_static EXPORT weft-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT weft-targets NAMESPACE weft:: DESTINATION ${weft_package_dir})

# gdb loads the second one by itself, together with the library: it looks for the name of
# the file under the path of the library. Programs with the static library use the first.
install(FILES tools/weft-gdb.py DESTINATION ${CMAKE_INSTALL_DATADIR}/weft)
install(FILES tools/weft-gdb.py
        DESTINATION ${CMAKE_INSTALL_DATADIR}/gdb/auto-load${CMAKE_INSTALL_FULL_LIBDIR}
        RENAME libweft.so.${PROJECT_VERSION}-gdb.py)

configure_package_config_file(cmake/weft-config.cmake.in ${PROJECT_BINARY_DIR}/weft-config.cmake
                              INSTALL_DESTINATION ${weft_package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weft-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weft-config.cmake
              ${PROJECT_BINARY_DIR}/weft-config-version.cmake
        DESTINATION ${weft_package_dir})

list(TRANSFORM liburing_LIBRARIES PREPEND -l OUTPUT_VARIABLE weft_private_libraries)
list(JOIN weft_private_libraries " " weft_private_libraries)
configure_file(cmake/weft.pc.in ${PROJECT_BINARY_DIR}/weft.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weft.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
