#!/bin/sh
# How the first process of every guest begins: loads what the kernel lacks, and finds the serial port
# of virtio, over which it talks to the host.  Messages of the kernel's and of
# these commands go to the console.
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
