# The guest's first process, behind begin.sh of tests/powercut: Redis without persistence, and a load
# of it, which talks over the port.  With a disk, that is written as well.
busybox ifconfig lo 127.0.0.1 up
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
