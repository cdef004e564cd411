# Before everything else that is installed: the directories that others may use, too.

set(shared_directories ${CMAKE_INSTALL_BINDIR} ${CMAKE_INSTALL_LIBDIR} ${CMAKE_INSTALL_LIBDIR}/cmake
    ${CMAKE_INSTALL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_INCLUDEDIR} ${CMAKE_INSTALL_DATADIR}
    ${CMAKE_INSTALL_DATADIR}/doc ${CMAKE_INSTALL_MANDIR})
foreach(section RANGE 1 8)
  list(APPEND shared_directories ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
install(CODE "set(PAWL_DIRECTORIES \"${shared_directories}\")")
install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/note_directories.cmake)
