# SPDX-License-Identifier: MIT
# Under emulation (cmake/aarch64.cmake) all tests run but these. Single tests of a program that
# cannot run there are listed with TEST_NATIVE in its file.

# emulator_excludes: pairs of a regex of tests, and why they are not run.
set(emulator_excludes
    "^unit_fiber_valgrind$" "valgrind runs programs of this machine"
)

function(weft_exclude_emulated)
    get_property(tests DIRECTORY PROPERTY TESTS)
    set(excludes ${emulator_excludes})
    while(excludes)
        list(GET excludes 0 regex)
        list(GET excludes 1 reason)
        list(REMOVE_AT excludes 0 1)
        foreach(name ${tests})
            if(name MATCHES "${regex}")
                message(STATUS "not under emulation: ${name}: ${reason}")
                set_tests_properties(${name} PROPERTIES DISABLED TRUE)
            endif()
        endforeach()
    endwhile()
endfunction()
