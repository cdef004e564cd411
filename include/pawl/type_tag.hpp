// By what a heap's file tells whether a program understands its objects as the one that made them
// did.  Included by pawl/heap.hpp.
#ifndef PAWL_TYPE_TAG_HPP
#define PAWL_TYPE_TAG_HPP

#include <cxxabi.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <typeinfo>
#include <version>

#if !defined(__GXX_RTTI)
#error "pawl/heap.hpp knows the types of roots by typeid: compile without -fno-rtti"
#endif
#if defined(_GLIBCXX_DEBUG)
#error \
    "pawl/heap.hpp: the containers of _GLIBCXX_DEBUG point to their iterators, which are elsewhere"
#endif

namespace pawl {
namespace detail {

// What decides where the members of the library's classes lie.  Compilers that share the Itanium
// C++ ABI agree on the rest, whatever their version and the version of C++.
#define PAWL_TEXT(text) #text
#define PAWL_TEXT_OF(macro) PAWL_TEXT(macro)
inline constexpr char kLayout[] =
    "C++ Itanium, "
#if defined(_LIBCPP_VERSION)
    "libc++ ABI " PAWL_TEXT_OF(_LIBCPP_ABI_VERSION)
#if defined(_LIBCPP_ABI_ALTERNATE_STRING_LAYOUT)
        " alternate strings"
#endif
#elif defined(__GLIBCXX__)
    "libstdc++"
#if _GLIBCXX_USE_CXX11_ABI
    " C++11 ABI"
#else
    " old ABI"
#endif
#if _GLIBCXX_INLINE_VERSION
    " versioned"
#endif
#else
#error "pawl/heap.hpp knows the layouts of libstdc++ and libc++"
#endif
    ;
#undef PAWL_TEXT_OF
#undef PAWL_TEXT
static_assert(sizeof(kLayout) <= 64);

template <class T>
std::string type_name() {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> readable(
      abi::__cxa_demangle(typeid(T).name(), nullptr, nullptr, &status), std::free);
  return status == 0 ? readable.get() : typeid(T).name();
}

}  // namespace detail

// A fingerprint (64-bit FNV-1a) of a type's name, size and alignment, never 0; the same whichever
// compiler made it.  It does not see what is inside a class: give a class whose members change
// without changing its size a new name.
template <class T>
std::uint64_t type_tag() {
  constexpr std::uint64_t kOffsetBasis = 0xcbf29ce484222325;
  constexpr std::uint64_t kPrime = 0x100000001b3;
  static const std::uint64_t tag = [] {
    std::uint64_t hash = kOffsetBasis;
    for (const char* at = typeid(T).name(); *at != '\0'; ++at)
      hash = (hash ^ static_cast<unsigned char>(*at)) * kPrime;
    for (const std::size_t number : {sizeof(T), alignof(T)}) hash = (hash ^ number) * kPrime;
    return hash != 0 ? hash : 1;
  }();
  return tag;
}

}  // namespace pawl

#endif
