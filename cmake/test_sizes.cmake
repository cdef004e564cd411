# How much the tests of a run try: little in the preset quick (./dev test), more in all others
# (./dev test --all).  `cmake -D NAME=...` has the last word, and the tries' own programs take as much
# as one likes.

option(PAWL_QUICK "Tests: of each kind the least that still notices a broken law" OFF)

# pawl_size(NAME QUICK FULL WHAT): a list is one of variants.
function(pawl_size name quick full what)
  set(size "${full}")
  if(PAWL_QUICK)
    set(size "${quick}")
  endif()
  set(${name} "${size}" CACHE STRING "${what}")
endfunction()

# The crash laboratory: docs/reliability.md.  The simulated disk and memory are not here: with fewer
# states some broken laws stay unnoticed.
pawl_size(PAWL_TORTURE_KILLS_CI 100 500 "Kills of the workloads' writer")
pawl_size(PAWL_TORTURE_KILLS_OF_ONE 40 100 "The same, where one kind of loss is looked for")
pawl_size(PAWL_POWERCUT_CUTS 1 8 "Power cuts of a virtual machine")
pawl_size(PAWL_DAMAGED_JOURNALS "--journal;lines" "" "Which journals are damaged in every small way")
pawl_size(PAWL_CALLS_ROUNDS 12 24 "Programs that are killed among random calls")
pawl_size(PAWL_HOSTILE_ROUNDS 30 30 "Rounds of the hostile directories")
pawl_size(PAWL_CONFINED_CALLS_ROUNDS 6 12 "Programs that are killed, in each sandbox")
pawl_size(PAWL_CONFINED_NAMES_ROUNDS 40 100 "Rounds of changing names in a sandbox")
pawl_size(PAWL_NAMES_ROUNDS 100 300 "Rounds of changing names")
pawl_size(PAWL_KERNEL_STORES_ROUNDS 200 700 "Rounds of the kernel's stores")

# Programs that know nothing of Pawl.
pawl_size(PAWL_TORTURE_KILLS 8 8 "Kills of each store")
pawl_size(PAWL_RETROFIT_TRACKERS "auto" "auto;fault" "Trackers under the preload library")
pawl_size(PAWL_RETROFIT_APPLIES "async" "async;eager" "Ways to apply under the preload library")
pawl_size(PAWL_RETROFIT_ALONE "hidden_names;ways_around;beside_libraries"
          "hidden_names;ways_around;within_malloc;beside_libraries" "What holds with the preload library alone")
pawl_size(PAWL_RETROFIT_KYOTO_TESTS "tree" "hash;tree;poly;dir" "Kyoto Cabinet's own tests")
pawl_size(PAWL_RETROFIT_KYOTO "hash" "hash;tree" "Kinds of Kyoto Cabinet's files")
pawl_size(PAWL_RETROFIT_TKRZW "hash;skip" "hash;hash_hard;hash_in_place;tree;tree_hard;tree_in_place;skip"
          "Kinds of Tkrzw's files")
pawl_size(PAWL_RETROFIT_TKRZW_PLAIN "skip" "hash;skip" "The same, without Pawl")
pawl_size(PAWL_RETROFIT_LMDB "nosync" "nosync;mapasync" "Modes of LMDB")
pawl_size(PAWL_RETROFIT_SLAPD "async" "sync;async" "Modes of slapd")
pawl_size(PAWL_RETROFIT_PYTHON "whole;numpy-r+" "whole;ranges;resize;numpy-r+;numpy-w+"
          "Ways of Python to map a file")
pawl_size(PAWL_RETROFIT_BOOST "flush" "flush;waiting-flush;msync" "Ways of Boost to flush")
pawl_size(PAWL_PYTHON_KILLS 10 40 "Kills of a program with the Python package")

# The compiler and failure-atomic sections.
pawl_size(PAWL_COMPILER_LEVELS "O0;O2" "O0;O1;O2;O3;Os" "Levels of optimisation")
pawl_size(PAWL_RANDOM_PROGRAMS 1 4 "Programs that the compiler's differential test makes")
pawl_size(PAWL_FASE_RANDOM_PROGRAMS 2 6 "Programs that the test of random sections makes")
pawl_size(PAWL_FASE_STRUCTURES "stack;map" "stack;queue;list;map" "Structures that are crashed and killed")
pawl_size(PAWL_FASE_STATES 100 300 "States of memory after losses of power, of each structure")
pawl_size(PAWL_FASE_KILLS 3 6 "Kills of programs with sections, of each structure")

# The example servers.
pawl_size(PAWL_KV_COMMANDS 2000 5000 "Random commands that are compared with a Redis's")
pawl_size(PAWL_KV_COMMANDS_MARKED 1500 4000 "The same, with a look at the marks or executed twice")
pawl_size(PAWL_KV_KILLS 6 20 "Kills of the server examples/kv")
pawl_size(PAWL_KV_KILLS_UNMARKED 3 8 "The same, without marks")
pawl_size(PAWL_KV_FAULTS 2 5 "Faults of the disk beneath the server")
pawl_size(PAWL_KV_MUTATIONS 300 1000 "Changed requests")
pawl_size(PAWL_KV_REQUESTS 500 2000 "Requests of redis-benchmark, of each kind")

# Whole-system persistence: a quick run leaves out tests that mostly wait.
pawl_size(PAWL_WSP_FAILURES 2 5 "Failures of a server under load")
pawl_size(PAWL_WSP_VM_FAILURES 1 4 "Failures of a machine with a Redis under load")
pawl_size(PAWL_WSP_VM_TESTS "keeps;trust" "keeps;machine;refusals;steps;trust" "Tests of a machine without disk")
