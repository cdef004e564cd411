# What mmap and msync alone would lose is found, and found again from its recipe.
# cmake -DPROGRAM=crash_simulated -P check_plain.cmake

set(traces ${CMAKE_CURRENT_BINARY_DIR}/crash_simulated_plain)
file(MAKE_DIRECTORY ${traces})
execute_process(COMMAND ${PROGRAM} --mode plain --states 10000 --traces ${traces}
                RESULT_VARIABLE result ERROR_VARIABLE said OUTPUT_VARIABLE summary)
if(NOT result EQUAL 1)
  message(FATAL_ERROR "plain mmap and msync lost nothing (${result}):\n${said}${summary}")
endif()
if(NOT said MATCHES "--state ([^ \n]+)")
  message(FATAL_ERROR "no recipe:\n${said}")
endif()
execute_process(COMMAND ${PROGRAM} --mode plain --replay ${traces}/crash_simulated-1.trace
                        --state ${CMAKE_MATCH_1}
                RESULT_VARIABLE result OUTPUT_VARIABLE again)
if(NOT result EQUAL 1)
  message(FATAL_ERROR "the recipe ${CMAKE_MATCH_1} loses nothing (${result}):\n${again}")
endif()
file(REMOVE_RECURSE ${traces})
