"""A private desktop on Wayland: sway without a screen. Input is possible only through the screen reader."""
import collections
import json
import os

from .bodies import eventually
from .desktop import Desktop

CONFIGURATION = """output HEADLESS-1 mode {size}@60Hz
output HEADLESS-1 scale {scale}
output HEADLESS-1 background #5a6270 solid_color
default_border none
for_window [app_id=".*"] floating enable
xwayland disable
"""
# sway does not run as root. In a user namespace it is another user, for whom the files have the same owner.
AS_USER = ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if os.getuid() == 0 else []


class WaylandDesktop(Desktop):
    """A desktop with one output of `size` pixels, of which `scale` are one unit of the windows."""

    def __init__(self, folder, scheme="light", size="1280x800", scale=2):
        self.scale = scale
        super().__init__(folder, scheme, size)

    def _start_display(self):
        (self.folder / "sway.conf").write_text(CONFIGURATION.format(size=self.size, scale=self.scale))
        own = {"XDG_RUNTIME_DIR": str(self.folder), "WLR_BACKENDS": "headless", "WLR_RENDERER": "pixman", "WLR_LIBINPUT_NO_DEVICES": "1"}
        words = [*AS_USER, "sway", "--unsupported-gpu", "--config", str(self.folder / "sway.conf")]
        self.start(*words, environment=own)
        find = lambda pattern: next((str(one) for one in self.folder.glob(pattern) if one.is_socket()), None)  # noqa: E731
        sockets = [eventually(lambda: find(pattern), lambda: f"sway does not start: {self.log(words[0])}")
                   for pattern in ("sway-ipc*", "wayland-*")]
        self.environment.update(zip(("SWAYSOCK", "WAYLAND_DISPLAY"), sockets), GDK_BACKEND="wayland", XDG_RUNTIME_DIR=str(self.folder))
        assert self._tree()["nodes"], self.log(words[0])

    def _tree(self):
        answered = self.run("swaymsg", "--raw", "--type", "get_tree")
        assert answered.returncode == 0, answered.stderr
        return json.loads(answered.stdout)

    def _output(self):
        return next(one for one in self._tree()["nodes"] if one["name"] == "HEADLESS-1")

    def windows(self):
        """Returns the title of each window with its place, without its shadow: x, y, width, height."""
        found, nodes = {}, [self._output()]
        while nodes:
            node = nodes.pop()
            nodes += node["nodes"] + node["floating_nodes"]
            if node.get("pid"):
                found[node["name"]] = tuple(node["rect"][side] for side in ("x", "y", "width", "height"))
        return found

    def is_inside(self, title):
        """Whether the whole window is on the screen."""
        x, y, width, height = self.windows()[title]
        screen = self._output()["rect"]
        return min(x, y) >= 0 and width > 0 and x + width <= screen["width"] and y + height <= screen["height"]

    def picture(self, name):
        path = self.folder / f"{name}.png"
        taken = self.run("grim", str(path))
        assert taken.returncode == 0, taken.stderr
        return path

    def colours(self, title):
        """Returns how often each colour is in a screenshot of the window."""
        x, y, width, height = self.windows()[title]
        path = self.folder / "window.ppm"
        taken = self.run("grim", "-t", "ppm", "-g", f"{x},{y} {width}x{height}", str(path))
        assert taken.returncode == 0, taken.stderr
        pixels = path.read_bytes().split(b"\n", 3)[3]
        return collections.Counter(pixels[place:place + 3] for place in range(0, len(pixels), 3))
