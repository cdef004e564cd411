#!/bin/sh
# The guest's first process: Redis without persistence, and a load of it, which talks over the serial
# port of virtio.  With a disk, that is written as well.
export PATH=/bin HOME=/ LD_LIBRARY_PATH=/lib
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
exec </dev/null >/dev/console 2>&1
for module in $(cat /modules/order); do
  insmod "/modules/$module"
done
busybox ifconfig lo 127.0.0.1 up
mkdir -p /tmp
port=
while [ -z "$port" ]; do
  for path in /dev/vport*; do
    [ -c "$path" ] && port=$path
  done
done
redis-server --save '' --appendonly no --daemonize no --logfile /dev/console &
redis=$!
if [ -b /dev/vda ]; then
  while true; do
    dd if=/dev/zero of=/dev/vda bs=1M count=32 oflag=direct 2>/dev/null
  done &
fi
guest_load "$port" 4 $redis
echo "FAULT the load ended" >"$port"
sleep 1000000
