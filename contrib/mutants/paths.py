"""Where the sources stand."""

CORE = "Sources/WatchwordCore/"
FETCH = CORE + "Fetch/"
PROTOCOL = "Sources/WatchwordProtocol/"
TRANSFERS = "Sources/Transfers/"
SOCKET = "Sources/BrokerSocket/"
DAEMON_BROKER = "Sources/Broker/"
CLIENTS = "contrib/clients/"
