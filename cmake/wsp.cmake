# Whole-system persistence: what `pawl wsp` stands on.  It knows the registers and system calls of one
# architecture.

# What it has in common with `pawl doctor -- PROGRAM`.
file(GLOB PAWL_TRACING_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/tracing/*.cc)
if(PAWL_TRACING_SOURCES AND CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  add_library(pawl_tracing STATIC ${PAWL_TRACING_SOURCES})
  target_link_libraries(pawl_tracing PUBLIC pawl_headers)
  pawl_harden(pawl_tracing)
endif()
# A library for what both forms use, and one for each form: a test builds what it uses, and no more.
if(TARGET pawl_tracing AND TARGET pawl_static AND CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  find_package(fmt REQUIRED)
  find_package(nlohmann_json REQUIRED)
  set(wsp ${PROJECT_SOURCE_DIR}/src/wsp)
  file(GLOB sources CONFIGURE_DEPENDS ${wsp}/power/*.cc ${wsp}/budget/*.cc
       ${wsp}/directory/*.cc)
  add_library(pawl_wsp_base STATIC ${sources})
  pawl_harden(pawl_wsp_base)
  target_link_libraries(pawl_wsp_base PUBLIC pawl_headers pawl_static pawl_tracing fmt::fmt
                                             nlohmann_json::nlohmann_json)
  foreach(form process vm)
    file(GLOB sources CONFIGURE_DEPENDS ${wsp}/${form}/*.cc)
    add_library(pawl_wsp_${form} STATIC ${sources})
    pawl_harden(pawl_wsp_${form})
    target_link_libraries(pawl_wsp_${form} PUBLIC pawl_wsp_base)
  endforeach()
endif()
