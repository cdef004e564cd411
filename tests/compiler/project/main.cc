// A program of a library and a main(), in C and C++.
#include <cstdio>
#include <cstring>
#include <string>

#include "counter.h"

#ifndef GREETING
#define GREETING "no greeting"
#endif

int main(int count, char** arguments) {
  counter* made = new counter;
  made->count = count;
  std::strcpy(made->name, "counter");
  counter_add(made, 41);
  const std::string said = std::string(made->name) + " " + std::to_string(made->count);
  std::printf("%s: %s\n", GREETING, said.c_str());
  static_cast<void>(arguments);
  delete made;
  return marks_are_linked() ? 0 : 1;
}
