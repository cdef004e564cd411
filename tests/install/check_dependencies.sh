#!/bin/sh
# check_dependencies.sh LIBRARY: it needs nothing but libc, the compiler's libraries and ISA-L.
set -eu
needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p')
[ -n "$needed" ] || { echo "readelf finds no dependencies in $1" >&2; exit 1; }
for library in $needed; do
  case $library in
    libc.so.* | ld-linux*.so.* | libm.so.* | libstdc++.so.* | libgcc_s.so.* | libisal.so.*) ;;
    *)
      echo "$1 needs $library" >&2
      exit 1
      ;;
  esac
done
