# run: ! /usr/bin/python3 -c 'import numpy' || pawl run --atomic '*.npy' -- /usr/bin/python3 balances_npy.py
import numpy

numpy.save("balances.npy", numpy.zeros(1000, dtype="<i8"))
FRAGMENT
del balances
assert numpy.load("balances.npy")[[3, 7]].tolist() == [-100, 100]
