#: The version of Watchword that this client is part of; the only place in this package that states it.
__version__ = "0.4.0"
