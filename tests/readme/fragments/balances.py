# run: ! /usr/bin/python3 -c 'import numpy' || /usr/bin/python3 balances.py
import numpy
import pawl

FRAGMENT
assert numpy.fromfile("balances", dtype="<i8")[[3, 7]].tolist() == [-100, 100]
