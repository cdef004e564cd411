# libpawl.so, libpawl.a and libpawl-preload.so.
#
#   core                medium, track, journal, mapping, snapshot
#   heap                the persistent heap on it, with its C functions
#   fase                failure-atomic sections, with their C functions
#   c_api.cc            the pawl_* functions of a mapping, and that of a snapshot; group_api.cc of
#                       groups, and map_atomic.cc for both
#   store_modules.cc    whether the program's modules mark their stores
#   store_api.cc        pawl_stored(), which hands on where the preload face stands before a libpawl
#   store_functions*    pawl_stored_*: what compiled programs call instead of libc's functions; not in
#                       the preload face
#   memory_wrappers.cc, descriptor_wrappers.cc
#                       wrappers of the calls on memory, of those that open libraries, and of those
#                       that close all descriptors; the preload face brings its own
#   kernel_stores_*.cc  wrappers of the system calls that store into memory (io: read and its kin,
#                       other: the rest); the preload face brings its own for the first kind

file(GLOB PAWL_CORE_SOURCES CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/src/medium/*.cc ${PROJECT_SOURCE_DIR}/src/track/*.cc
     ${PROJECT_SOURCE_DIR}/src/journal/*.cc ${PROJECT_SOURCE_DIR}/src/mapping/*.cc
     ${PROJECT_SOURCE_DIR}/src/snapshot/*.cc)
file(GLOB PAWL_HEAP_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/heap/*.cc)
file(GLOB PAWL_FASE_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/fase/*.cc)
file(GLOB PAWL_C_API_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/mapping/c_api.cc
     ${PROJECT_SOURCE_DIR}/src/mapping/group_api.cc ${PROJECT_SOURCE_DIR}/src/mapping/map_atomic.cc
     ${PROJECT_SOURCE_DIR}/src/snapshot/c_api.cc ${PROJECT_SOURCE_DIR}/src/track/store_api.cc
     ${PROJECT_SOURCE_DIR}/src/track/store_modules.cc)
file(GLOB PAWL_STORE_FUNCTIONS_SOURCES CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/src/track/store_functions*.cc
     ${PROJECT_SOURCE_DIR}/src/track/red_black_tree.cc)
file(GLOB PAWL_STORES_IO_SOURCES CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/src/track/kernel_stores_io.cc)
file(GLOB PAWL_MEMORY_WRAPPERS_SOURCES CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/src/mapping/memory_wrappers.cc
     ${PROJECT_SOURCE_DIR}/src/medium/descriptor_wrappers.cc)
file(GLOB PAWL_STORES_OTHER_SOURCES CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/src/track/kernel_stores_other.cc)
file(GLOB PAWL_PRELOAD_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/preload/*.cc)
list(REMOVE_ITEM PAWL_CORE_SOURCES ${PAWL_C_API_SOURCES} ${PAWL_STORES_IO_SOURCES}
     ${PAWL_STORES_OTHER_SOURCES} ${PAWL_STORE_FUNCTIONS_SOURCES} ${PAWL_MEMORY_WRAPPERS_SOURCES})

# Where sources are compiled several at a time (the presets' CMAKE_UNITY_BUILD), each wrapper of libc
# still stands alone: what it wraps is a macro of its own.  So does what takes in headers of the kernel,
# which define much.
set_source_files_properties(${PAWL_STORES_IO_SOURCES} ${PAWL_STORES_OTHER_SOURCES}
                            ${PAWL_STORE_FUNCTIONS_SOURCES}
                            ${PAWL_MEMORY_WRAPPERS_SOURCES}
                            ${PROJECT_SOURCE_DIR}/src/track/store_marks.cc
                            ${PROJECT_SOURCE_DIR}/src/medium/memory_functions.cc
                            ${PROJECT_SOURCE_DIR}/src/medium/shared_blocks.cc
                            ${PROJECT_SOURCE_DIR}/src/track/store_api.cc
                            ${PROJECT_SOURCE_DIR}/src/track/store_modules.cc
                            PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

# Their dlopen() has to end in a jump, in a debug build as well.
set_source_files_properties(${PAWL_MEMORY_WRAPPERS_SOURCES}
                            ${PROJECT_SOURCE_DIR}/src/preload/libraries.cc
                            PROPERTIES COMPILE_OPTIONS -O2)

# What every target that includes Pawl's own headers needs.
add_library(pawl_headers INTERFACE)
target_include_directories(pawl_headers INTERFACE ${PROJECT_SOURCE_DIR}/src
                                                  ${PROJECT_SOURCE_DIR}/include)

if(PAWL_CORE_SOURCES)
  add_library(pawl_core_objects OBJECT ${PAWL_CORE_SOURCES})
  target_link_libraries(pawl_core_objects PUBLIC pawl_headers)
  target_include_directories(pawl_core_objects SYSTEM PRIVATE ${ISAL_INCLUDE_DIRS})
  pawl_harden(pawl_core_objects)

  # For what tests a part of the core, without the wrappers of libc.
  add_library(pawl_core STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:pawl_core_objects>)
  target_link_libraries(pawl_core PUBLIC pawl_headers ${ISAL_LIBRARIES})
endif()

function(pawl_configure_library target)
  pawl_harden(${target})
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:pawl_headers>)
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                 $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()

# The shared libraries export C names only.  Templates of the standard library have default
# visibility whatever the compiler is told, so the linker is told as well.
function(pawl_configure_shared_library target)
  pawl_configure_library(${target})
  target_link_libraries(${target} PRIVATE ${ISAL_LIBRARIES})
  target_compile_definitions(${target} PRIVATE PAWL_BUILDING_SHARED)
  target_link_options(${target} PRIVATE
                      "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/pawl.map"
                      "LINKER:--as-needed"
                      # Handlers of signals and forks, and threads, outlive dlclose(3).
                      "LINKER:-z,nodelete")
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/pawl.map)
  if(NOT PAWL_SANITIZE)
    target_link_options(${target} PRIVATE "LINKER:-z,defs")
  endif()
endfunction()

if(PAWL_CORE_SOURCES)
  set(PAWL_SOURCES_ON_CORE ${PAWL_HEAP_SOURCES} ${PAWL_FASE_SOURCES} ${PAWL_C_API_SOURCES}
                           ${PAWL_STORES_IO_SOURCES} ${PAWL_STORES_OTHER_SOURCES}
                           ${PAWL_STORE_FUNCTIONS_SOURCES} ${PAWL_MEMORY_WRAPPERS_SOURCES})
  # Where nobody installs what is built, it is compiled once for both libraries, but for the source that
  # knows which it is in: so the archive, too, shows names to who loads what is linked with it.
  if(PAWL_QUICK OR PAWL_BREAKABLE)
    set(of_either ${PROJECT_SOURCE_DIR}/src/track/store_modules.cc)
    list(REMOVE_ITEM PAWL_SOURCES_ON_CORE ${of_either})
    add_library(pawl_shown_objects OBJECT ${PAWL_SOURCES_ON_CORE})
    target_link_libraries(pawl_shown_objects PRIVATE pawl_headers)
    target_compile_definitions(pawl_shown_objects PRIVATE PAWL_BUILDING_SHARED)
    pawl_harden(pawl_shown_objects)
    set(PAWL_SOURCES_ON_CORE $<TARGET_OBJECTS:pawl_shown_objects> ${of_either})
  endif()
  add_library(pawl_static STATIC $<TARGET_OBJECTS:pawl_core_objects> ${PAWL_SOURCES_ON_CORE})
  pawl_configure_library(pawl_static)
  target_link_libraries(pawl_static INTERFACE ${ISAL_LIBRARIES} stdc++)
  set_target_properties(pawl_static PROPERTIES OUTPUT_NAME pawl)
  add_library(Pawl::pawl_static ALIAS pawl_static)
endif()

# Optimised as one, where the compiler can: a commit on persistent memory is many small steps, and a
# twelfth to a seventh of it was calls from one file into another (./dev bench snapshot).
include(CheckIPOSupported)
set(PAWL_OPTIMISED_AS_ONE OFF)
if(CMAKE_BUILD_TYPE MATCHES "Rel" AND CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT PAWL_SANITIZE
   AND NOT PAWL_BREAKABLE AND NOT PAWL_QUICK)
  check_ipo_supported(RESULT PAWL_OPTIMISED_AS_ONE OUTPUT ipo_reason LANGUAGES CXX)
endif()

if(PAWL_C_API_SOURCES)
  if(PAWL_OPTIMISED_AS_ONE)
    add_library(pawl SHARED ${PAWL_CORE_SOURCES} ${PAWL_SOURCES_ON_CORE})
    target_include_directories(pawl SYSTEM PRIVATE ${ISAL_INCLUDE_DIRS})
    set_target_properties(pawl PROPERTIES INTERPROCEDURAL_OPTIMIZATION ON)
  else()
    add_library(pawl SHARED $<TARGET_OBJECTS:pawl_core_objects> ${PAWL_SOURCES_ON_CORE})
  endif()
  pawl_configure_shared_library(pawl)
  set_target_properties(pawl PROPERTIES SOVERSION 0 VERSION ${PROJECT_VERSION})
  add_library(Pawl::pawl ALIAS pawl)
endif()

if(PAWL_PROGRAMS AND PAWL_C_API_SOURCES AND PAWL_PRELOAD_SOURCES)
  # By themselves, for they define nothing of libc's: libc's headers are read as everywhere.
  add_library(pawl_preload_objects OBJECT ${PAWL_HEAP_SOURCES} ${PAWL_FASE_SOURCES}
                                          ${PAWL_C_API_SOURCES})
  target_link_libraries(pawl_preload_objects PRIVATE pawl_headers)
  pawl_harden(pawl_preload_objects)
  add_library(pawl_preload SHARED
              $<TARGET_OBJECTS:pawl_core_objects> $<TARGET_OBJECTS:pawl_preload_objects>
              ${PAWL_STORES_OTHER_SOURCES} ${PAWL_PRELOAD_SOURCES})
  pawl_configure_shared_library(pawl_preload)
  # Before the constructors of the libraries that the program is linked with (src/preload/processes.cc).
  target_link_options(pawl_preload PRIVATE "LINKER:-z,initfirst")
  foreach(target pawl_preload pawl_preload_objects)
    target_compile_definitions(${target} PRIVATE PAWL_BUILDING_SHARED PAWL_PRELOAD_FACE)
  endforeach()
  # With memory of its own (src/preload/own_memory.cc), so with a C++ library of its own.  Sanitizers
  # have theirs.
  if(NOT PAWL_SANITIZE)
    target_compile_definitions(pawl_preload PRIVATE PAWL_OWN_MEMORY)
    target_link_options(pawl_preload PRIVATE -static-libstdc++ "LINKER:--exclude-libs,libstdc++.a")
  endif()
  # The first of those that are compiled together says how libc's headers are read.
  set_target_properties(pawl_preload PROPERTIES OUTPUT_NAME pawl-preload
                        UNITY_BUILD_CODE_BEFORE_INCLUDE "#include \"preload/interpose.h\"")
endif()

# The preload face's sources for its unit tests: an archive, so that only what a test names is taken.
if(PAWL_TESTS AND PAWL_CORE_SOURCES AND PAWL_PRELOAD_SOURCES)
  add_library(pawl_preload_parts STATIC ${PAWL_PRELOAD_SOURCES})
  target_link_libraries(pawl_preload_parts PUBLIC pawl_static PRIVATE pawl_headers)
  set_target_properties(pawl_preload_parts PROPERTIES
                        UNITY_BUILD_CODE_BEFORE_INCLUDE "#include \"preload/interpose.h\"")
endif()
