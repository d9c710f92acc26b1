"""Disks that are soon full."""
import contextlib
import subprocess


@contextlib.contextmanager
def small(folder, size):
    """`folder` on a disk of its own, of `size` as tmpfs(5) has it."""
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True)
    assert done.returncode == 0, f"run the tests as a user who may mount: {done.stderr!r}"
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
