"""The servers of the end-to-end tests, without access logs and with more pages."""
import contextlib
import secrets
import signal
import ssl
import time
import urllib.request

from rig import ntlm, servers

from .processes import Process

USER = "bob"
ADDRESSES = 16
PAGE = b"x" * 1024
PAGES = ["1k", "staff/1k"]


class Sites:
    """Servers that are started on first use and stopped with the context."""

    def __init__(self, folder):
        self.folder, self.password = folder, secrets.token_hex(8)
        self.stack, self.started = contextlib.ExitStack(), {}

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.stack.close()

    @property
    def login(self):
        return f"{USER}:{self.password}"

    def _one(self, name, make):
        if name not in self.started:
            self.started[name] = make(self._folder(name))
        return self.started[name]

    def _folder(self, name):
        (self.folder / name).mkdir(exist_ok=True)
        return self.folder / name

    @property
    def tls(self):
        return self._one("tls", servers.certificates)

    def nginx(self, is_secure=False):
        """Returns the URL. `1k` is open; `staff/1k` and `realm/NUMBER/1k`, each in its own realm, require Basic; `up/` accepts PUT."""
        return self._one("nginx-tls" if is_secure else "nginx", lambda folder: self._nginx(folder, is_secure))

    def _nginx(self, folder, is_secure):
        server = servers.nginx(folder, USER, self.password, tls=self.tls if is_secure else None)
        self.stack.callback(server.stop)
        for page in PAGES:
            (folder / "www" / page).write_bytes(PAGE)
        (folder / "www" / "up").mkdir()
        (folder / "www" / "up").chmod(0o777)
        # Without a slow hash, because the password check of nginx is not to be measured.
        users = folder / "users"
        users.write_text(f"{USER}:{{PLAIN}}{self.password}\n")
        path = folder / "nginx.conf"
        text = path.read_text()
        listen = text[text.index("listen 127.0.0.1:"):].split(";")[0]
        others = "".join(f"; {listen.replace('127.0.0.1', f'127.0.0.{number}', 1)}" for number in range(2, ADDRESSES + 1))
        more = (f" location ~ ^/realm/(\\d+)/ {{ auth_basic \"Realm $1\"; auth_basic_user_file {users}; try_files /1k =404; }}"
                " location /up/ { dav_methods PUT; client_max_body_size 0; } location = /ready { return 204; }")
        text = text.replace(listen, listen + others, 1)
        text = text.replace("events {}", "worker_rlimit_nofile 16384; events { worker_connections 8192; }")
        lines = [line.split("access_log")[0] + "access_log off;" if "access_log" in line else line for line in text.split("\n")]
        path.write_text("\n".join(lines).replace(" location /staff/", more + " location /staff/", 1))
        server.process.send_signal(signal.SIGHUP)
        url = f"http{'s' if is_secure else ''}://{'localhost' if is_secure else '127.0.0.1'}:{server.port}/"
        self._wait_for_reload(server.port, is_secure)
        return url

    def _wait_for_reload(self, port, is_secure):
        """Waits until workers with the new configuration have answered five times in a row."""
        context = ssl._create_unverified_context() if is_secure else None
        end, answers = time.monotonic() + 20, 0
        while answers < 5:
            try:
                with urllib.request.urlopen(f"http{'s' if is_secure else ''}://127.0.0.1:{port}/ready", timeout=5, context=context):
                    answers += 1
            except OSError:
                answers = 0
                if time.monotonic() > end:
                    raise RuntimeError("nginx did not load its new configuration") from None
                time.sleep(0.05)

    def apache(self):
        """Returns the URL of a page that requires Digest."""
        return self._one("apache", self._apache)

    def _apache(self, folder):
        server = servers.apache_digest(folder, USER, self.password)
        self.stack.callback(server.stop)
        page = folder / "www" / "private" / "1k"
        page.write_bytes(PAGE)
        page.chmod(0o644)
        return f"http://127.0.0.1:{server.port}/private/1k"

    def squid(self):
        """Returns squid's process, a proxy for everyone with one port, its usual log, and without a cache. `port` is its port."""
        return self._one("squid", self._squid)

    def _squid(self, folder):
        port = servers.free_port()
        folder.chmod(0o777)  # started by root, squid runs as another user
        (folder / "squid.conf").write_text("\n".join([
            f"http_port 127.0.0.1:{port}", "http_access allow all", "cache deny all", "cache_mem 8 MB", f"pid_filename {folder}/pid",
            f"access_log stdio:{folder}/access.log", f"cache_log {folder}/log", "cache_store_log none", f"coredump_dir {folder}", "netdb_filename none",
            "pinger_enable off", "shutdown_lifetime 0 seconds", "visible_hostname localhost", "max_filedescriptors 4096"]) + "\n")
        process = Process([servers.find("squid"), "-N", "-f", folder / "squid.conf"], folder)
        self.stack.callback(process.__exit__)
        process.port = port
        servers.wait_for_port(port)
        return process

    def ntlm(self):
        """Returns the URL of a page that requires NTLM, or None without pyspnego. The Python server limits the rate."""
        return self._one("ntlm", self._ntlm) if ntlm.spnego else None

    def _ntlm(self, folder):
        def page(request):
            # The records that the server makes for tests would fill the memory.
            server.wire = b""
            server.requests.clear()
            server.handler.served.clear()
            return ntlm.response(200, PAGE)

        server = ntlm.ntlm_server(folder, {USER: self.password}, handler=page)
        self.stack.callback(server.close)
        return server.url + "/1k"
