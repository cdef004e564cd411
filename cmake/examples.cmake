# The examples.

# One C11 file each, against the shared library and the public headers only, as a user would.
file(GLOB PAWL_EXAMPLE_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.c)
if(TARGET pawl)
  foreach(source ${PAWL_EXAMPLE_SOURCES})
    get_filename_component(name ${source} NAME_WE)
    add_executable(example_${name} ${source})
    target_link_libraries(example_${name} PRIVATE pawl)
    pawl_harden(example_${name})
    set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name}
                          RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
  endforeach()
  add_subdirectory(${PROJECT_SOURCE_DIR}/examples/kv ${PROJECT_BINARY_DIR}/examples/kv-build)
  add_subdirectory(${PROJECT_SOURCE_DIR}/examples/cache ${PROJECT_BINARY_DIR}/examples/cache-build)
endif()
