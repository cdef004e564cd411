# Whole-system persistence: what `pawl wsp` stands on.  It knows the registers and system calls of one
# architecture.

file(GLOB_RECURSE PAWL_WSP_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/wsp/*.cc
     ${PROJECT_SOURCE_DIR}/src/tracing/*.cc)
if(PAWL_WSP_SOURCES AND TARGET pawl_static AND CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  find_package(fmt REQUIRED)
  find_package(nlohmann_json REQUIRED)
  add_library(pawl_wsp STATIC ${PAWL_WSP_SOURCES})
  target_link_libraries(pawl_wsp PUBLIC pawl_headers pawl_static fmt::fmt
                                        nlohmann_json::nlohmann_json)
endif()
