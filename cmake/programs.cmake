# The pawl command.

file(GLOB PAWL_CLI_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/*.cc)
# Watching a program knows the registers and system calls of one architecture.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  file(GLOB PAWL_WATCH_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/watch/*.cc)
endif()
if(PAWL_CLI_SOURCES AND TARGET pawl_static)
  find_package(CLI11 REQUIRED)
  find_package(fmt REQUIRED)
  find_package(nlohmann_json REQUIRED)
  add_executable(pawl_command ${PAWL_CLI_SOURCES} ${PAWL_WATCH_SOURCES})
  pawl_harden(pawl_command)
  if(PAWL_WATCH_SOURCES)
    target_compile_definitions(pawl_command PRIVATE PAWL_CAN_WATCH)
    target_link_libraries(pawl_command PRIVATE pawl_tracing)
  endif()
  target_link_libraries(pawl_command PRIVATE pawl_headers pawl_static CLI11::CLI11 fmt::fmt
                                             nlohmann_json::nlohmann_json)
  set_target_properties(pawl_command PROPERTIES OUTPUT_NAME pawl)
  # No test that is sanitized runs these verbs, and they take long to build.
  if(TARGET pawl_wsp_base AND NOT PAWL_SANITIZE)
    file(GLOB PAWL_CLI_WSP_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/wsp/*.cc)
    target_sources(pawl_command PRIVATE ${PAWL_CLI_WSP_SOURCES})
    target_compile_definitions(pawl_command PRIVATE PAWL_HAS_WSP)
    target_link_libraries(pawl_command PRIVATE pawl_wsp_process pawl_wsp_vm)
  endif()
endif()
