# The guest's first and only process, behind begin.sh: does what the host says over the port, a line
# at a time, and answers "status N".  What the commands print goes the same way, and has left the
# guest when write() returns; their errors go to the console.
exec 3<>"$port"
echo "booted $(uname -r)" >&3
while read -r line <&3; do
  eval "$line" >&3 3>&-
  echo "status $?" >&3
done
