#!/bin/sh
# fresh.sh CHECKOUT WORK [--all | COMMAND...]: makes a bare Debian 12 root in WORK, copies the checkout in,
# and follows the README there to the letter: as root, as an ordinary user with sudo, and without a
# network once all is installed.  --all runs the tests there, too.  With a command: runs that in the
# checkout, as root.
#
# What a step needs and does not install itself is not there, so that the step fails.  There is a cache of
# compiled objects, which needs the compiler to be there: the user's root compiles what root's has not.
set -eu
checkout=$1 work=$2
shift 2
SUITE=bookworm
BASE_DAYS_MAX=1  # the packages of a root that is older are not what a new machine has
base=$work/bare.tar
root=$work/root
of_user=$work/user  # the root in which the ordinary user is, and its log beside it
objects=$work/objects  # the cache, where both roots have it: /var/cache/objects
OBJECTS_SIZE_MAX=500M
home=/srv  # of the checkout, pawl, and of what is done beside it, work; one path, or no object is found again

mkdir -p "$work" "$objects"
chmod 1777 "$objects"
if [ -z "$(find "$base" -mtime -$BASE_DAYS_MAX 2>/dev/null)" ]; then
  echo "fresh: making a bare Debian 12 root, a minute or two"
  mmdebstrap --quiet --format=tar --variant=minbase --include=ccache $SUITE "$base.new"
  mv "$base.new" "$base"
fi

# make_root: a new root from the base.
make_root() {
  rm -rf --one-file-system "$root"
  mkdir "$root"
  tar -C "$root" -xf "$base"
  cp -L /etc/resolv.conf "$root/etc/resolv.conf"
}

# What git tracks, and what it would.
copy_checkout() {
  mkdir -p "$root$home/pawl"
  # What is tracked and was removed is warned of.
  (cd "$checkout" && git ls-files -z --cached --others --exclude-standard |
    tar --ignore-failed-read --null -T - -cf -) | tar -C "$root$home/pawl" -xf -
}

# enter [UNSHARE-OPTION...] -- COMMAND...: in the root, with processes and mounts of its own that end with it.
enter() {
  options=
  while [ "$1" != -- ]; do
    options="$options $1"
    shift
  done
  shift
  # shellcheck disable=SC2086,SC2016  # options are words; the inner shell expands the rest
  unshare --mount --pid --fork --kill-child $options sh -ec '
    root=$1 objects=$2 objects_size_max=$3
    shift 3
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/dev/shm"
    mkdir -p "$root/var/cache/objects"
    mount --bind "$objects" "$root/var/cache/objects"
    exec chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      LANG=C.UTF-8 TERM=dumb CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache \
      CCACHE_DIR=/var/cache/objects CCACHE_MAXSIZE="$objects_size_max" CCACHE_UMASK=000 \
      CCACHE_SLOPPINESS=time_macros "$@"' enter "$root" "$objects" "$OBJECTS_SIZE_MAX" "$@"
}

follow_as_user() {
  root=$of_user
  make_root
  enter -- sh -ec 'apt-get update -q && apt-get install -y -q --no-install-recommends sudo
    useradd --create-home user
    echo "user ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/user' >/dev/null
  copy_checkout
  enter -- sh -ec 'chown -R user: "$0"
    exec setpriv --reuid user --regid user --init-groups env HOME=/home/user USER=user \
      "$0/pawl/tests/fresh/follow.sh" "$0/pawl" "$0/work"' "$home"
}

trap 'wait; rm -rf --one-file-system "$root" "$of_user"' EXIT

make_root
copy_checkout
if [ $# -gt 0 ] && [ "$1" != --all ]; then
  enter -- sh -c 'cd "$0/pawl" && "$@"' "$home" "$@"
  exit
fi

fresh=$home/pawl/tests/fresh
echo "fresh: as root"
enter -- env HOME=/root "$fresh/follow.sh" "$home/pawl" "$home/work" "$@"
# Most of what packages take is waiting, which what root compiles by itself fills.
(set -e; follow_as_user) >"$of_user.log" 2>&1 &
user=$!
enter -- env HOME=/root "$fresh/take_in.sh" "$home/pawl" "$home/work"
echo "fresh: without a network, what was installed"
enter --net -- env HOME=/root "$fresh/use.sh" "$home/work"

echo "fresh: as an ordinary user, with sudo"
status=0
wait "$user" || status=$?
cat "$of_user.log"
[ "$status" = 0 ]
echo "fresh: every step did what it says"
