"""The desktop session agent of Watchword: asks the person what the broker may not decide."""

VERSION = "0.1"
