#!/bin/sh
# The guest's first and only process: loads what the kernel lacks, then does what the host says over
# a serial port of virtio, a line at a time, and answers "status N".  What the commands print goes
# the same way, and has left the guest when write() returns; their errors, and the kernel's
# messages, go to the console.
export PATH=/bin HOME=/ LD_LIBRARY_PATH=/lib
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
exec </dev/null >/dev/console 2>&1
for module in $(cat /modules/order); do
  insmod "/modules/$module"
done
mkdir -p /disk /tmp
port=
while [ -z "$port" ]; do
  for path in /dev/vport*; do
    [ -c "$path" ] && port=$path
  done
done
exec 3<>"$port"
echo "booted $(uname -r)" >&3
while read -r line <&3; do
  eval "$line" >&3 3>&-
  echo "status $?" >&3
done
