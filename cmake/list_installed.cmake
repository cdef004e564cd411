# Writes the names of all installed files, relative to the prefix, into a file among them.
set(names ${CMAKE_INSTALL_MANIFEST_FILES})
list(TRANSFORM names REPLACE "^${CMAKE_INSTALL_PREFIX}/" "")
list(APPEND names ${PAWL_INSTALLED_FILES})
list(SORT names)
list(JOIN names "\n" lines)
file(WRITE "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${PAWL_INSTALLED_FILES}" "${lines}\n")
