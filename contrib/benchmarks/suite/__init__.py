"""The benchmark suite: what it measures is in `groups`, what has to hold in `targets`."""
