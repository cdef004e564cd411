# run: ! /usr/bin/python3 -c 'import numpy' || /usr/bin/python3 package.py

FRAGMENT
assert numpy.fromfile("balances", dtype="<i8")[[3, 7]].tolist() == [-100, 100]
