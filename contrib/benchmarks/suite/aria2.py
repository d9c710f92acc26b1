"""aria2 as a daemon with JSON-RPC, which writes each download to a file."""
import http.client
import json
import os
import subprocess
import time

from rig.servers import free_port

SECONDS = 120


class Daemon:
    def __init__(self, program, folder, user, password):
        folder.mkdir()
        self.port, self.folder, self.next = free_port(), folder, 0
        configuration = folder / "aria2.conf"
        configuration.write_text(f"http-user={user}\nhttp-passwd={password}\n")
        configuration.chmod(0o600)
        self.process = subprocess.Popen(
            [program, f"--conf-path={configuration}", "--enable-rpc", f"--rpc-listen-port={self.port}", "--dir", folder / "files", "-q",
             "--max-download-result=100000", "--file-allocation=none", "--auto-file-renaming=false", "--allow-overwrite=true",
             "--http-auth-challenge=false", "--max-connection-per-server=16", "--disk-cache=0"],
            env={"HOME": str(folder), "PATH": os.environ["PATH"]}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def __enter__(self):
        end = time.monotonic() + 20
        while True:
            try:
                self.call("aria2.getVersion")
                return self
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.__exit__()
                    raise RuntimeError("aria2c does not listen") from None
                time.sleep(0.05)

    def __exit__(self, *exception):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(20)

    def call(self, method, *params):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request("POST", "/jsonrpc", json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}))
            reply = json.load(connection.getresponse())
        finally:
            connection.close()
        if "result" not in reply:
            raise RuntimeError(f"aria2: {reply}")
        return reply["result"]

    def rate(self, url, count, parallel):
        """Queues `count` downloads of `url` at once and waits for the last; returns downloads per second."""
        self.call("aria2.purgeDownloadResult")
        self.call("aria2.changeGlobalOption", {"max-concurrent-downloads": str(parallel)})
        names = range(self.next, self.next + count)
        self.next += count
        calls = [{"methodName": "aria2.addUri", "params": [[url], {"out": str(name)}]} for name in names]
        begin = time.monotonic()
        self.call("system.multicall", calls)
        while int(self.call("aria2.getGlobalStat")["numStopped"]) < count:
            if time.monotonic() > begin + SECONDS:
                raise RuntimeError("aria2 did not finish in time")
            time.sleep(0.01)
        seconds = time.monotonic() - begin
        wrong = [found for found in self.call("aria2.tellStopped", 0, count, ["status"]) if found["status"] != "complete"]
        if wrong:
            raise RuntimeError(f"aria2: {len(wrong)} downloads failed")
        for name in names:
            (self.folder / "files" / str(name)).unlink()
        return count / seconds
