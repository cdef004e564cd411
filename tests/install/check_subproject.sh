#!/bin/sh
# check_subproject.sh CMAKE SOURCE CC CXX: in another project (FetchContent does the same) Pawl brings its
# libraries under the names that find_package gives, looks for no package of its programs and tests, and
# installs nothing.  ./dev fresh builds such a project.
set -eu
cmake=$1 source=$2 cc=$3 cxx=$4
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/install.XXXXXX")
trap 'rm -rf "$work"' EXIT

cat >"$work/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(theirs LANGUAGES C CXX)
add_subdirectory($source pawl)
add_executable(theirs $source/tests/install/consumer/consumer.c)
target_link_libraries(theirs PRIVATE Pawl::pawl)
add_executable(theirs_static $source/tests/install/consumer/consumer.c)
target_link_libraries(theirs_static PRIVATE Pawl::pawl_static)
foreach(target pawl_command pawl_preload pawl_pass example_bank pawl_test_support bench_common)
  if(TARGET \${target})
    message(FATAL_ERROR "\${target} would be built")
  endif()
endforeach()
foreach(package GTest Boost CLI11 fmt nlohmann_json)
  if(\${package}_FOUND OR \${package}_DIR)
    message(FATAL_ERROR "\${package} was looked for")
  endif()
endforeach()
END
"$cmake" -G Ninja -S "$work" -B "$work/build" -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" \
  >"$work/configure.log" 2>&1 || { cat "$work/configure.log" >&2; exit 1; }
if grep -i 'file(INSTALL' "$work/build/pawl/cmake_install.cmake" >&2; then
  echo "the other project would install this" >&2
  exit 1
fi
