# SPDX-License-Identifier: MIT
# Installation rules: libraries, headers, pkg-config and CMake files.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(weft_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weft)

install(TARGETS weft weft_static EXPORT weft-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT weft-targets NAMESPACE weft:: DESTINATION ${weft_package_dir})

# gdb loads the second copy automatically with the library: it looks for the file's name under
# the library's path. Programs that link the static library use the first copy.
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

# The folders, as absolute paths or relative to the prefix.
foreach(folder LIBDIR INCLUDEDIR)
    set(weft_pc_${folder} ${CMAKE_INSTALL_${folder}})
    if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
        set(weft_pc_${folder} "\${prefix}/${CMAKE_INSTALL_${folder}}")
    endif()
endforeach()
list(TRANSFORM liburing_LIBRARIES PREPEND -l OUTPUT_VARIABLE weft_private_libraries)
list(JOIN weft_private_libraries " " weft_private_libraries)
configure_file(cmake/weft.pc.in ${PROJECT_BINARY_DIR}/weft.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weft.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Skipped in a parent project, which decides itself what to install and when to call ldconfig.
if(weft_is_top_level AND NOT CMAKE_CROSSCOMPILING)
    string(REPLACE "\${prefix}" "\${CMAKE_INSTALL_PREFIX}" weft_libdir "${weft_pc_LIBDIR}")
    install(CODE "set(weft_libdir \"${weft_libdir}\")
                  set(weft_soname libweft.so.${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})")
    install(SCRIPT cmake/ldconfig.cmake)
endif()
