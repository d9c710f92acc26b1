"""Installs files and removes them again, using a list of installed files.

The list has lines of the form `file SHA256 PATH`, `link TARGET PATH` and `folder - PATH`; paths contain no line breaks.
"""
import hashlib
import os

from .tree import Refused, Tree

_KINDS = ("file", "link", "folder")


class Installation:
    def __init__(self, destination, list_path, roots):
        """`destination` is prepended to every path; it is empty for the running system. Only files in the folders `roots` are
        written or removed. The list is in the first of these folders."""
        self.list_path, self.roots = list_path, [root.rstrip("/") + "/" for root in roots]
        self.tree = Tree(str(destination), roots)
        self.known = self._read()

    def place(self, path):
        return self.tree.full(path)

    # Existing files

    def _read(self):
        text = self.tree.read_own(self.list_path)
        return dict(self._parsed(line, number) for number, line in enumerate((text or "").split("\n")[:-1], 1))

    def _parsed(self, line, number):
        kind, _, rest = line.partition(" ")
        value, _, path = rest.partition(" ")
        if kind not in _KINDS or not self._is_within(path, is_folder=kind == "folder"):
            raise Refused(f"{self.place(self.list_path)}, line {number}: malformed line {line!r}; "
                          "nothing was changed. Check who wrote the file, and remove it")
        return path, (kind, value)

    def _is_within(self, path, is_folder):
        """Whether a path is in one of the roots. A folder may also be an ancestor, which is removed when empty."""
        # guard: install-list-paths
        if os.path.normpath(path) != path or not path.startswith("/") or path.startswith("//"):
            return False
        return any(path.startswith(root) or is_folder and root.startswith(path + "/") for root in self.roots)

    @staticmethod
    def wanted(entry):
        return ("link", entry.link) if entry.link else ("file", hashlib.sha256(entry.content).hexdigest())

    def in_the_way(self, entries):
        """Returns the paths of existing files that would be overwritten, although no installation has written their contents."""
        return [one.path for one in entries
                if self.tree.state(one.path) not in (None, self.wanted(one), self.known.get(one.path, ("", "")))]

    # Installing

    def install(self, entries, set_aside=False):
        """Writes all entries, or raises `Refused` without changing anything. Returns the new paths of files set aside."""
        strays = [one.path for one in entries if not self._is_within(one.path, is_folder=False)]
        assert not strays, strays
        obstacles = self.in_the_way(entries)
        if obstacles and not set_aside:
            raise Refused("These files were not installed by Watchword, or were changed since, and are not overwritten:\n  "
                          + "\n  ".join(obstacles) + "\nMove them away, or use --set-aside to rename them to NAME.set-aside.")
        aside = [self.tree.set_aside(path) for path in obstacles]
        if self.tree.destination:
            Tree("", []).make_folder(self.tree.destination)
        self._make_folder(os.path.dirname(self.list_path))
        for entry in entries:
            self._make_folder(os.path.dirname(entry.path))
            if entry.link:
                self.tree.link(entry.path, entry.link)
            else:
                self.tree.write(entry.path, entry.content, entry.mode)
            self.known[entry.path] = self.wanted(entry)
            # Saved after each file, so that an interrupted installation can be uninstalled or repeated.
            self._keep()
        for path in set(self.known) - {one.path for one in entries}:
            if self.known[path][0] != "folder":
                if self.tree.state(path) == self.known[path]:
                    self.tree.remove(path)
                del self.known[path]
        self._keep()
        return aside

    def _make_folder(self, path):
        self.known.update((made, ("folder", "-")) for made in self.tree.make_folder(path))

    def _keep(self):
        text = "".join(f"{kind} {value} {path}\n" for path, (kind, value) in sorted(self.known.items()))
        self.tree.write(self.list_path, text.encode("utf-8", "surrogateescape"), 0o644)

    # Removing

    def uninstall(self):
        """Removes the installed files. Returns the paths of changed files, which stay."""
        if not self.known:
            raise Refused(f"no list of installed files at {self.place(self.list_path)}; "
                          "use the --prefix, --user or --destdir of the installation")
        left = []
        for path, one in self.known.items():
            state = self.tree.state(path)
            if one[0] == "folder" or state is None:
                continue
            if state == one:
                self.tree.remove(path)
            else:
                left.append(path)
        self.tree.remove(self.list_path)
        for path in sorted((path for path, one in self.known.items() if one[0] == "folder"), key=len, reverse=True):
            self.tree.remove_folder(path)
        return sorted(left)
