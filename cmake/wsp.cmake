# Whole-system persistence: what `pawl wsp` stands on.  It knows the registers and system calls of one
# architecture.

file(GLOB_RECURSE PAWL_WSP_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/wsp/*.cc)
# What it has in common with `pawl doctor -- PROGRAM`.
file(GLOB PAWL_TRACING_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/tracing/*.cc)
if(PAWL_TRACING_SOURCES AND CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  add_library(pawl_tracing STATIC ${PAWL_TRACING_SOURCES})
  target_link_libraries(pawl_tracing PUBLIC pawl_headers)
endif()
if(PAWL_WSP_SOURCES AND TARGET pawl_static AND CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  find_package(fmt REQUIRED)
  find_package(nlohmann_json REQUIRED)
  add_library(pawl_wsp STATIC ${PAWL_WSP_SOURCES})
  target_link_libraries(pawl_wsp PUBLIC pawl_headers pawl_static pawl_tracing fmt::fmt
                                        nlohmann_json::nlohmann_json)
endif()
