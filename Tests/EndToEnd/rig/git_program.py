"""git, with watchword as its helper."""
import os
import subprocess

from .broker import program


def install_helper(folder):
    """Makes a folder with the helper under the names that programs use; returns it."""
    folder.mkdir()
    for name in ["git-credential-watchword", "watchword-askpass", "watchword"]:
        (folder / name).symlink_to(os.path.realpath(program("watchword")))
    return folder


class Git:
    """git with a home directory of its own, whose helper uses one broker."""

    def __init__(self, broker, tools, *settings):
        self.environment = {
            "HOME": str(broker.home), "PATH": f"{tools}:{os.environ['PATH']}", "WATCHWORD_SOCKET": broker.socket,
            "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        self.settings = [option for setting in settings for option in ("-c", setting)]

    def __call__(self, *arguments, **more):
        return subprocess.run(
            ["git", *self.settings, *arguments], env={**self.environment, **more.pop("environment", {})}, capture_output=True, text=True,
            timeout=60, start_new_session=True, **more)

    def credential(self, operation, *lines):
        """Runs `git credential`, which calls the helper."""
        return self("credential", operation, input="".join(f"{line}\n" for line in [*lines, ""]))
