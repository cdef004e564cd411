# cmake --install, what finds Pawl afterwards (pkg-config and find_package(Pawl)), and the list of what
# was installed, by which it is removed again.

include(CMakePackageConfigHelpers)

set(PAWL_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Pawl)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/pawl DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

if(TARGET pawl)
  set_target_properties(pawl PROPERTIES EXPORT_NAME pawl)
  install(TARGETS pawl pawl_static EXPORT PawlTargets
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT PawlTargets NAMESPACE Pawl:: DESTINATION ${PAWL_PACKAGE_DIR})

  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/PawlConfig.cmake.in
                                ${PROJECT_BINARY_DIR}/PawlConfig.cmake
                                INSTALL_DESTINATION ${PAWL_PACKAGE_DIR})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/PawlConfigVersion.cmake
                                   COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/PawlConfig.cmake ${PROJECT_BINARY_DIR}/PawlConfigVersion.cmake
          DESTINATION ${PAWL_PACKAGE_DIR})

  # Paths relative to the file itself, so that an installed tree can be moved.
  file(RELATIVE_PATH PAWL_PC_PREFIX
       ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  string(REGEX REPLACE "/$" "" PAWL_PC_PREFIX ${PAWL_PC_PREFIX})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/pawl.pc.in ${PROJECT_BINARY_DIR}/pawl.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/pawl.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

if(TARGET pawl_preload)
  install(TARGETS pawl_preload LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET pawl_command)
  install(TARGETS pawl_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# The Python package, for PYTHONPATH or pip; there it finds the library of the same tree.
if(TARGET pawl)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/python DESTINATION ${CMAKE_INSTALL_DATADIR}/pawl
          FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "pyproject.toml" PATTERN "README.md"
          PATTERN "__pycache__" EXCLUDE)
endif()

foreach(section RANGE 1 8)
  file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.${section})
  if(pages)
    install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
  endif()
endforeach()

# The documents, as they lie in the source: the pages name them.
install(FILES ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR}
        FILES_MATCHING PATTERN "*.md" PATTERN man EXCLUDE)

# All of it, and nothing else: ./dev install builds this.
add_custom_target(installed)
foreach(target pawl pawl_static pawl_preload pawl_command pawl_pass pawl_fase_pass)
  if(TARGET ${target})
    add_dependencies(installed ${target})
  endif()
endforeach()

# Last, when all others are on the list.
install(CODE "set(PAWL_INSTALLED_FILES \"${CMAKE_INSTALL_DATADIR}/pawl/installed-files\")")
install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/list_installed.cmake)
