"""Watchword's desktop agent: shows the broker's questions to the person."""

VERSION = "0.1"
