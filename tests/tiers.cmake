# SPDX-License-Identifier: MIT
# Which tests run where. Each test of a build belongs to one tier:
#
#   tier:test  `make test`: 5 minutes on 2 cores. Each program at least once.
#   tier:ci    .ci/run, which also runs tier:test, in each of its builds
#   tier:soak  `make soak`, which runs everything
#
# weft_set_tiers() gives each test of this folder its label, so that none is without. The first
# rule that matches decides.

# Under emulation a test takes ten times as long: one number of workers is a sample.
if(CMAKE_CROSSCOMPILING)
    set(tier_soak "_w(1|8|64|200)(_|$)|_ring4_|_fibers_")
    set(tier_ci ".")
else()
    set(tier_soak "^$")
    if(NOT WEFT_URING OR CMAKE_C_COMPILER_ID MATCHES Clang)
        # These depend neither on the backend nor on the compiler of the library.
        set(tier_soak "^(install|refused|snippets|subproject|tidy|tidy_self)$")
    endif()
    if(NOT WEFT_URING)
        string(APPEND tier_soak "|^errno$")
    endif()
    # The same programs with other numbers of workers, or with each system call failing.
    set(tier_ci "_w(1|200)(_|$)|_ring4_w2|_fibers_w(1|8|200)|^faults_")
    # Scripts that compile or run other programs for long.
    string(APPEND tier_ci "|^(errno|gdb_fibers|idle_syscalls|install|refused|snippets|subproject)$")
    string(APPEND tier_ci "|^unit_fiber_valgrind$")
endif()

function(weft_set_tiers)
    get_property(tests DIRECTORY PROPERTY TESTS)
    foreach(name ${tests})
        if(name MATCHES "${tier_soak}")
            set(tier soak)
        elseif(name MATCHES "${tier_ci}")
            set(tier ci)
        else()
            set(tier test)
        endif()
        set_tests_properties(${name} PROPERTIES LABELS tier:${tier})
    endforeach()
endfunction()
