"""What the scripts share that draw a benchmark's rows."""

import sys

import matplotlib

matplotlib.use("Agg")  # there may be no display
import matplotlib.pyplot as plt


def finish_axes(axes, title, counts, base=10):
    """For lines: times against the counts, both logarithmic."""
    axes.set_xscale("log", base=base)
    axes.set_yscale("log")
    axes.set_xticks(sorted(counts), [str(count) for count in sorted(counts)])
    axes.set_title(title, fontsize=10)
    axes.grid(True, which="both", alpha=0.25)


def save(figure, machine):
    """Into the file that the second argument names."""
    figure.suptitle(f"{machine['processor']}; {machine['kernel']}; {machine['file_system']}",
                    fontsize=8)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(sys.argv[2], dpi=120)
    print(f"figure: {sys.argv[2]}")
