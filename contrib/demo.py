"""The demonstration: nginx with Basic authentication, a private broker, and `watchword fetch`, twice."""
import os
import pathlib
import pty
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
WATCHWORD = str(pathlib.Path(os.environ.get("WATCHWORD_BIN_DIR", ROOT / ".build" / "debug")) / "watchword")


def start_nginx(folder, user, password):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "www").mkdir()
    (folder / "www" / "report.txt").write_text("A report for staff who know the watchword.\n")
    line = subprocess.run(["openssl", "passwd", "-apr1", "-stdin"], input=password, text=True, capture_output=True, check=True)
    (folder / "users").write_text(f"{user}:{line.stdout.strip()}\n")
    spool = "".join(f"{name}_temp_path {folder}/{name}; " for name in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
    account = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"daemon off; {account} pid {folder}/pid; events {{}}\n"
        f"http {{ {spool} access_log off; server {{ listen 127.0.0.1:{port}; root {folder}/www; default_type text/plain;\n"
        f"auth_basic \"Staff reports\"; auth_basic_user_file {folder}/users; }} }}\n")
    nginx = "/usr/sbin/nginx"
    process = subprocess.Popen([nginx, "-c", f"{folder}/nginx.conf", "-e", f"{folder}/error.log"], stderr=subprocess.DEVNULL)
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return process, f"http://127.0.0.1:{port}/report.txt"
        except OSError:
            time.sleep(0.02)
    sys.exit(f"demo: nginx did not start:\n{(folder / 'error.log').read_text()}")


def answer_in_a_terminal(command, answers):
    """Runs `command` in a pseudo-terminal, types each of `answers` after its prompt, and prints the output."""
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(command[0], command)
    shown, waiting = b"", list(answers)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        ready, _, _ = select.select([terminal], [], [], 1)
        if not ready:
            continue
        try:
            data = os.read(terminal, 4096)
        except OSError:
            break
        if not data:
            break
        sys.stdout.write(data.decode(errors="replace").replace("\r\n", "\n"))
        sys.stdout.flush()
        shown += data
        if waiting and waiting[0][0] in shown:
            os.write(terminal, waiting.pop(0)[1].encode() + b"\n")
            shown = b""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main():
    user, password = "alice", secrets.token_urlsafe(9)
    with tempfile.TemporaryDirectory(prefix="watchword-demo-") as name:
        folder = pathlib.Path(name)
        (folder / "run").mkdir(mode=0o700)
        os.environ["WATCHWORD_SOCKET"] = str(folder / "run" / "broker.sock")
        nginx, url = start_nginx(folder, user, password)
        fetch = [WATCHWORD, "fetch", "--fail", url]
        try:
            print(f"\nA web server requires a login at {url}\n    user:     {user}\n    password: {password}\n")
            print("$ watchword fetch --fail " + url, flush=True)
            if "--answer" in sys.argv:
                code = answer_in_a_terminal(fetch, [(b"User", user), (b"Password", password)])
            elif not os.isatty(0):
                sys.exit("demo: no terminal to prompt at; run it at a terminal, or with --answer")
            else:
                code = subprocess.run(fetch).returncode
            if code != 0:
                print("\nThe login was not completed; run contrib/demo again", file=sys.stderr)
                return code
            print("\nThe broker has stored the login for the session. Once more, without a prompt:\n\n$ watchword fetch --fail " + url, flush=True)
            again = subprocess.run(fetch, stdin=subprocess.DEVNULL).returncode
            print("\n$ watchword status", flush=True)
            subprocess.run([WATCHWORD, "status"])
            return again
        except KeyboardInterrupt:
            return 130
        finally:
            lock = folder / "run" / "broker.sock.lock"
            if lock.exists() and lock.read_text().strip():
                os.kill(int(lock.read_text()), signal.SIGTERM)
            nginx.terminate()
            nginx.wait(10)


sys.exit(main())
