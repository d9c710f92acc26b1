"""The benchmark suite. `groups` contains the measurements, `targets` the required figures."""
