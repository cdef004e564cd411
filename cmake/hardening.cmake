# What Debian compiles its packages with, for all that is installed: pawl_harden(TARGET).  A sanitizer
# does more, and gets in the way of some of it.

function(pawl_harden target)
  if(PAWL_SANITIZE)
    return()
  endif()
  target_compile_options(${target} PRIVATE -fstack-protector-strong -fstack-clash-protection)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
    target_compile_options(${target} PRIVATE -fcf-protection)
  endif()
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  # Without optimisation the headers of libc only warn that they check nothing.  A distribution that
  # asks for more itself keeps it.
  if(type MATCHES "^REL" AND NOT CMAKE_CXX_FLAGS_${type} MATCHES "-O0"
     AND NOT CMAKE_CXX_FLAGS MATCHES "_FORTIFY_SOURCE")
    target_compile_definitions(${target} PRIVATE _FORTIFY_SOURCE=2)
  endif()
  get_target_property(kind ${target} TYPE)
  if(NOT kind MATCHES "STATIC|OBJECT|INTERFACE")
    target_link_options(${target} PRIVATE "LINKER:-z,relro" "LINKER:-z,now" "LINKER:-z,noexecstack")
  endif()
endfunction()
