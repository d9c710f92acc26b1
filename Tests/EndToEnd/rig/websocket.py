"""A WebSocket server behind nginx, which requires Basic at /private/."""
import asyncio
import pathlib
import threading

import websockets

from .servers import Server, free_port, nginx_command, password_line


class Echo:
    """A server of the library "websockets". It repeats each message, and says "bye" before it closes after the message "end"."""

    def __init__(self):
        self.port, self.paths, self.headers = free_port(), [], []
        self.loop = asyncio.new_event_loop()
        started = threading.Event()
        threading.Thread(target=self._run, args=(started,), daemon=True).start()
        assert started.wait(20)

    def _run(self, started):
        asyncio.set_event_loop(self.loop)
        self.server = self.loop.run_until_complete(websockets.serve(self._talk, "127.0.0.1", self.port, max_size=1 << 24))
        started.set()
        self.loop.run_forever()

    async def _talk(self, connection, *_):
        self.paths.append(connection.path)
        self.headers.append(connection.request_headers)
        async for message in connection:
            if message == "end":
                await connection.send("bye")
                return
            await connection.send(message)

    async def _close(self):
        self.server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def stop(self):
        asyncio.run_coroutine_threadsafe(self._close(), self.loop).result(20)
        self.loop.call_soon_threadsafe(self.loop.stop)


def nginx(folder, port, user, password, tls=None):
    """nginx in front of the server at `port`."""
    folder, own = pathlib.Path(folder), free_port()
    (folder / "users").write_text(password_line(user, password))
    secure = f" ssl; ssl_certificate {tls}/server.pem; ssl_certificate_key {tls}/server.key" if tls else ""
    return Server(nginx_command(
        folder, "$status $remote_user $request_uri $http_authorization",
        f"server {{ listen 127.0.0.1:{own}{secure}; location / {{ proxy_pass http://127.0.0.1:{port}; proxy_http_version 1.1;\n"
        "proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $http_connection; proxy_set_header Host $http_host; }\n"
        f"location /private/ {{ auth_basic \"Private\"; auth_basic_user_file {folder}/users; proxy_pass http://127.0.0.1:{port};\n"
        "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $http_connection; }\n"
        "location = /plain { return 200 \"plain page\"; } }"), own, folder / "access.log")
