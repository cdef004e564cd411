# Which of the directories that ./dev uninstall may remove are not there yet.  CMake runs it before
# anything is installed; those of an installation before this one are on its list.
set(PAWL_DIRECTORIES_MADE)
foreach(directory IN ITEMS "" ${PAWL_DIRECTORIES})
  if(NOT EXISTS "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${directory}")
    list(APPEND PAWL_DIRECTORIES_MADE "${directory}/")
  endif()
endforeach()
