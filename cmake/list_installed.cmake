# Writes the names of all installed files, relative to the prefix, into a file among them, and with a
# slash at the end those of the directories that were made for them.
set(list "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${PAWL_INSTALLED_FILES}")
set(names ${CMAKE_INSTALL_MANIFEST_FILES})
list(TRANSFORM names REPLACE "^${CMAKE_INSTALL_PREFIX}/" "")
list(APPEND names ${PAWL_INSTALLED_FILES} ${PAWL_DIRECTORIES_MADE})
if(EXISTS "${list}")
  file(STRINGS "${list}" made_before REGEX "/$")
  list(APPEND names ${made_before})
  list(REMOVE_DUPLICATES names)
endif()
list(SORT names)
list(JOIN names "\n" lines)
file(WRITE "${list}" "${lines}\n")
