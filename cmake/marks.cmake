# pawl_mark_stores(TARGET SOURCES SOURCE... [FLAGS FLAG...])
#
# Has these sources of the target compiled by pawl-clang++, so that their stores carry marks and can be
# tracked by them (PAWL_TRACKER=store); other trackers take no notice.  They see STORES_ARE_MARKED
# defined.  Where the pass is not built they stay as they are.  FLAGS are their include paths.
function(pawl_mark_stores target)
  cmake_parse_arguments(mark "" "" "SOURCES;FLAGS" ${ARGN})
  if(NOT TARGET pawl_pass)
    return()
  endif()
  # The compiler that the pass is made for takes it by itself.
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang AND CMAKE_CXX_COMPILER_VERSION MATCHES "^19\\.")
    set(pass ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libpawl-pass.so)
    set_source_files_properties(${mark_SOURCES} PROPERTIES COMPILE_OPTIONS -fpass-plugin=${pass}
                                COMPILE_DEFINITIONS STORES_ARE_MARKED)
    add_dependencies(${target} pawl_pass)
    # Ninja lets a target's sources compile before the targets that it depends on are linked.
    if(CMAKE_GENERATOR MATCHES Ninja)
      set_source_files_properties(${mark_SOURCES} PROPERTIES OBJECT_DEPENDS ${pass})
    endif()
    return()
  endif()
  set(flags -DSTORES_ARE_MARKED -std=c++20 -O2 -g1 -fPIC -fvisibility=hidden -Wall -Wextra -Wpedantic
            -Wshadow -Wconversion -Wno-sign-conversion -I${PROJECT_SOURCE_DIR}/include ${PAWL_HARDENED}
            ${PAWL_FORTIFIED} ${mark_FLAGS})
  if(PAWL_WERROR)
    list(APPEND flags -Werror)
  endif()
  foreach(source ${mark_SOURCES})
    get_filename_component(name ${source} NAME_WE)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${target}-marked/${name}.o)
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/pawl-clang++ ${flags} -MD -MF ${object}.d -c ${source}
              -o ${object}
      DEPENDS ${source} pawl_pass
      DEPFILE ${object}.d
      COMMENT "Building ${name}.cc of ${target} with marks"
      VERBATIM)
    set_source_files_properties(${source} PROPERTIES HEADER_FILE_ONLY ON)
    target_sources(${target} PRIVATE ${object})
  endforeach()
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${target}-marked)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
endfunction()
