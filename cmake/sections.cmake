# pawl_sections(TARGET SOURCES SOURCE... [SCHEME ido] [INCLUDE DIRECTORY...] [DEFINE MACRO...])
#
# Has these sources of the target, of C or C++, compiled by pawl-clang with -fpawl=SCHEME, and the
# target linked to fixed addresses with a build-id, which recovery needs.  Call it only where the
# target pawl_fase_pass is.
function(pawl_sections target)
  cmake_parse_arguments(sections "" "SCHEME" "SOURCES;INCLUDE;DEFINE" ${ARGN})
  if(NOT sections_SCHEME)
    set(sections_SCHEME ido)
  endif()
  set(flags -O2 -g1 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
            -fpawl=${sections_SCHEME} -I${PROJECT_SOURCE_DIR}/include)
  if(PAWL_WERROR)
    list(APPEND flags -Werror)
  endif()
  foreach(directory ${sections_INCLUDE})
    list(APPEND flags -I${directory})
  endforeach()
  foreach(macro ${sections_DEFINE})
    list(APPEND flags -D${macro})
  endforeach()
  set(objects ${CMAKE_CURRENT_BINARY_DIR}/${target}-sections)
  file(MAKE_DIRECTORY ${objects})
  foreach(source ${sections_SOURCES})
    get_filename_component(source ${source} ABSOLUTE)
    get_filename_component(name ${source} NAME)
    set(compiler pawl-clang -std=c11)
    if(name MATCHES "\\.cc$")
      set(compiler pawl-clang++ -std=c++20)
    endif()
    list(POP_FRONT compiler program)
    set(object ${objects}/${name}.o)
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${program} ${compiler} ${flags} -MD -MF ${object}.d
              -c ${source} -o ${object}
      DEPENDS ${source} pawl_fase_pass
      DEPFILE ${object}.d
      COMMENT "Building ${name} of ${target} with sections (${sections_SCHEME})"
      VERBATIM)
    target_sources(${target} PRIVATE ${object})
  endforeach()
  target_link_options(${target} PRIVATE -no-pie LINKER:--build-id=sha1)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
endfunction()
