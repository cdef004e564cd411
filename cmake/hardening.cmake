# What Debian compiles its packages with, for all that is installed and for the examples:
# pawl_harden(TARGET [FIXED_ADDRESSES]).  A sanitizer does more, and gets in the way of some of it.
# tests/install/check_hardening.py reads in the files what has come of it.

# For what a compiler is called with by itself, too (cmake/marks.cmake).
set(PAWL_HARDENED "")
set(PAWL_FORTIFIED "")
if(NOT PAWL_SANITIZE)
  set(PAWL_HARDENED -fstack-protector-strong -fstack-clash-protection)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
    list(APPEND PAWL_HARDENED -fcf-protection)
  endif()
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  # Without optimisation the headers of libc only warn that they check nothing.  A distribution that
  # asks for more itself keeps it.
  if(type MATCHES "^REL" AND NOT CMAKE_CXX_FLAGS_${type} MATCHES "-O0"
     AND NOT CMAKE_CXX_FLAGS MATCHES "_FORTIFY_SOURCE")
    set(PAWL_FORTIFIED -D_FORTIFY_SOURCE=2)
  endif()
endif()

function(pawl_harden target)
  if(PAWL_SANITIZE)
    return()
  endif()
  target_compile_options(${target} PRIVATE ${PAWL_HARDENED})
  target_compile_definitions(${target} PRIVATE ${PAWL_FORTIFIED})
  get_target_property(kind ${target} TYPE)
  if(NOT kind MATCHES "STATIC|OBJECT|INTERFACE")
    target_link_options(${target} PRIVATE "LINKER:-z,relro" "LINKER:-z,now" "LINKER:-z,noexecstack")
    # Recovery of sections needs a program at fixed addresses.
    if(kind STREQUAL EXECUTABLE AND NOT "FIXED_ADDRESSES" IN_LIST ARGN)
      target_link_options(${target} PRIVATE -pie)
    endif()
  endif()
endfunction()
