"""Opens tunnels through a proxy, and holds them until the end of standard input.

    tunnels.py PORT ORIGIN-PORT COUNT

Each tunnel is checked by a request to the origin, which is an HTTP server. Prints "ready" when all are open.
"""
import resource
import select
import socket
import sys

SECONDS = 60


def receive(connection, end):
    received = b""
    while end not in received:
        part = connection.recv(1 << 16)
        if not part:
            raise RuntimeError(f"the tunnel ended: {received!r}")
        received += part
    return received


def main():
    port, origin, count = map(int, sys.argv[1:])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    tunnels = []
    for _ in range(count):
        tunnels.append(socket.create_connection(("127.0.0.1", port), timeout=SECONDS))
        tunnels[-1].sendall(f"CONNECT 127.0.0.1:{origin} HTTP/1.1\r\nHost: 127.0.0.1:{origin}\r\n\r\n".encode())
        if not receive(tunnels[-1], b"\r\n\r\n").startswith(b"HTTP/1.1 200 "):
            raise RuntimeError("no tunnel")
    for tunnel in tunnels:
        tunnel.sendall(b"HEAD /1k HTTP/1.1\r\nHost: origin\r\n\r\n")
    for tunnel in tunnels:
        receive(tunnel, b"\r\n\r\n")
    print("ready", flush=True)
    select.select([sys.stdin], [], [])


if __name__ == "__main__":
    main()
