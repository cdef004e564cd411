# tests/unit/NAME_test.cc is the executable unit_NAME, and each of its cases a test of ctest; the
# other kinds of tests bring their own CMakeLists.txt.
#
# Where a test has a COST it is the seconds that it takes, more or less: ctest begins with the longest,
# so that none of them runs on alone at the end.

find_package(GTest REQUIRED)
include(GoogleTest)

# To optimise the templates of a test takes longer than to run them as they are; what is tested is
# optimised as ever.
function(pawl_leave_unoptimised target)
  # The thread sanitizer would watch each variable that an optimisation keeps in a register.
  if(NOT PAWL_SANITIZE MATCHES thread)
    target_compile_options(${target} PRIVATE -O0)
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # With it gcc 12 sees copies of short strings that are too long.
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
  endif()
endfunction()

# The headers of GoogleTest take longer to read than most tests that include them: they are read once.
# As they are read unoptimised, so is the target; it links GoogleTest.
function(pawl_read_test_headers_once target)
  if(NOT TARGET pawl_test_headers)
    file(WRITE ${PROJECT_BINARY_DIR}/test_headers.cc "// Nothing but the headers.\n")
    add_executable(pawl_test_headers ${PROJECT_BINARY_DIR}/test_headers.cc)
    target_link_libraries(pawl_test_headers PRIVATE GTest::gmock GTest::gtest_main)
    target_precompile_headers(pawl_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
    set_target_properties(pawl_test_headers PROPERTIES
                          RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    pawl_leave_unoptimised(pawl_test_headers)
  endif()
  pawl_leave_unoptimised(${target})
  target_precompile_headers(${target} REUSE_FROM pawl_test_headers)
endfunction()

# What is tested under the sanitizers; all of the rest need not be built there.  Where there is but one
# thread, the one for threads has nothing to say; and in unit_process it is wrong, for it does not see
# that some of the children are made.
set(PAWL_TESTS_WITHOUT_TSAN
    unit_heap_store unit_reader unit_track_store_cplusplus unit_format unit_free_space
    unit_journal_by_hand heap_model heap_full_disk heap_hostile heap_misuse stl_containers
    stl_two_heaps stl_roots stl_stray_pointers stl_killed fase_undo wsp_power_sources wsp_save_budget
    wsp_vm_marker unit_process)
add_custom_target(sanitized_tests)
# Sets pawl_label for the target's tests: the one that the sanitizers' presets run, or `label` without them.
function(pawl_sanitize_too target label)
  if(PAWL_SANITIZE MATCHES thread AND target IN_LIST PAWL_TESTS_WITHOUT_TSAN)
    set(label without_tsan)
  else()
    add_dependencies(sanitized_tests ${target})
    if(PAWL_SANITIZE)
      set(label sanitized)
    endif()
  endif()
  set(pawl_label ${label} PARENT_SCOPE)
  # Where each line comes with its checks, all the more.
  if(PAWL_SANITIZE)
    pawl_leave_unoptimised(${target})
  endif()
endfunction()

if(TARGET pawl_static)
  file(GLOB PAWL_TEST_SUPPORT_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/support/*.cc)
  add_library(pawl_test_support INTERFACE)
  target_include_directories(pawl_test_support INTERFACE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(pawl_test_support INTERFACE pawl_headers)
  if(PAWL_QUICK)
    target_compile_definitions(pawl_test_support INTERFACE PAWL_QUICK)
  endif()
  if(PAWL_TEST_SUPPORT_SOURCES)
    add_library(pawl_test_support_objects STATIC ${PAWL_TEST_SUPPORT_SOURCES})
    target_include_directories(pawl_test_support_objects PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(pawl_test_support_objects PUBLIC pawl_headers GTest::gmock
                                                            pawl_workload)
    target_link_libraries(pawl_test_support INTERFACE pawl_test_support_objects)
  endif()
  target_link_libraries(pawl_test_support INTERFACE pawl_static GTest::gmock GTest::gtest)

  file(GLOB PAWL_UNIT_TEST_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/unit/*_test.cc)
  foreach(source ${PAWL_UNIT_TEST_SOURCES})
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "_test$" "" name ${name})
    add_executable(unit_${name} ${source})
    if(name MATCHES "^preload_" AND TARGET pawl_preload_parts)
      target_link_libraries(unit_${name} PRIVATE pawl_preload_parts)
    endif()
    target_link_libraries(unit_${name} PRIVATE pawl_test_support GTest::gtest_main)
    set_target_properties(unit_${name} PROPERTIES
                          RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    pawl_sanitize_too(unit_${name} unit)
    pawl_read_test_headers_once(unit_${name})
    gtest_discover_tests(unit_${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         NO_PRETTY_VALUES TEST_PREFIX "unit_${name}." PROPERTIES LABELS ${pawl_label} TIMEOUT 300)
  endforeach()

  # For tests that open a library.  Programs of tests/retrofit find it by their own path.
  add_library(test_plugin MODULE ${PROJECT_SOURCE_DIR}/tests/support/plugin.c)
  set_target_properties(test_plugin PROPERTIES PREFIX "" OUTPUT_NAME plugin
                        C_VISIBILITY_PRESET default
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_dependencies(unit_memory_calls test_plugin)

  foreach(kind workload calls kernel_stores cli snapshot heap fase stl kv cache compiler retrofit python crash hostile trust names torture powercut fuzz demo wsp wsp_process wsp_vm bench proofs unprivileged
               stm install readme)
    if(EXISTS ${PROJECT_SOURCE_DIR}/tests/${kind}/CMakeLists.txt)
      add_subdirectory(${PROJECT_SOURCE_DIR}/tests/${kind})
    endif()
  endforeach()
endif()
