#!/bin/sh
# take_in.sh CHECKOUT WORK: what takes Pawl in and asks for no rights: projects that use the installed library, and one
# that has its source.  Behind follow.sh.
set -eu
checkout=$1
cd "$2"

step() {
  echo "== $*"
}

step "users of the installed library: CMake"
cmake -G Ninja -S "$checkout/tests/install/consumer" -B consumer
cmake --build consumer
consumer/consumer_shared shared.data
consumer/consumer_static static.data

step "users of the source: a project that takes Pawl in"
mkdir -p theirs
cat >theirs/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.25)
project(theirs LANGUAGES C CXX)
include(FetchContent)
FetchContent_Declare(pawl SOURCE_DIR $checkout)
FetchContent_MakeAvailable(pawl)
add_executable(theirs $checkout/tests/install/consumer/consumer.c)
target_link_libraries(theirs PRIVATE Pawl::pawl)
END
# Each source by itself is what the stage clang reads; several at a time take a third of the time.
cmake -G Ninja -S theirs -B theirs/build -D CMAKE_UNITY_BUILD=ON -D CMAKE_UNITY_BUILD_BATCH_SIZE=12
cmake --build theirs/build -j 2 --target theirs
theirs/build/theirs theirs.data
