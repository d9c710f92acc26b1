"""File systems with little space."""
import contextlib
import subprocess


@contextlib.contextmanager
def small(folder, size):
    """Mounts a file system of `size`, as in tmpfs(5), on `folder`."""
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True)
    assert done.returncode == 0, f"cannot mount; run the tests as root: {done.stderr!r}"
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
