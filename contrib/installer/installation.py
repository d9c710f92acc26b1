"""Puts files into a system and takes them out again, by a list of what was put there.

The list is a file of lines: `file SHA256 PATH`, `link TARGET PATH`, `folder - PATH`; a path never holds a line break.
"""
import hashlib
import os
import pathlib
import tempfile


class Refused(Exception):
    """Nothing was changed."""


class Installation:
    def __init__(self, destination, list_path):
        """`destination` is put before every path: an empty text for the running system."""
        self.destination, self.list_path = str(destination).rstrip("/"), list_path
        self.known = self._read()

    def place(self, path):
        return pathlib.Path(self.destination + path)

    # What is there

    def _read(self):
        try:
            lines = self.place(self.list_path).read_text().splitlines()
        except FileNotFoundError:
            return {}
        return {path: (kind, value) for kind, value, path in (line.split(" ", 2) for line in lines)}

    def state(self, path):
        """What lies there, in the words of the list; None for nothing."""
        place = self.place(path)
        if place.is_symlink():
            return "link", os.readlink(place)
        if place.is_file():
            return "file", hashlib.sha256(place.read_bytes()).hexdigest()
        return ("folder", "-") if place.is_dir() else ("other", "-") if os.path.lexists(place) else None

    @staticmethod
    def wanted(entry):
        return ("link", entry.link) if entry.link else ("file", hashlib.sha256(entry.content).hexdigest())

    def in_the_way(self, entries):
        """What would be overwritten, and was not put there as it is by an installation."""
        return [one.path for one in entries
                if self.state(one.path) not in (None, self.wanted(one), self.known.get(one.path, ("", "")))]

    # Putting

    def install(self, entries, set_aside=False):
        """Writes everything, or changes nothing and says why; returns what was set aside."""
        obstacles = self.in_the_way(entries)
        if obstacles and not set_aside:
            raise Refused("These files are not as an installation has left them, and are not overwritten:\n  "
                          + "\n  ".join(obstacles) + "\nMove them away, or say --set-aside: they then get the ending .set-aside.")
        aside = []
        for path in obstacles:
            os.replace(self.place(path), self.place(path + ".set-aside"))
            aside.append(path + ".set-aside")
        if self.destination:
            pathlib.Path(self.destination).mkdir(parents=True, exist_ok=True)
        self._make_folders(os.path.dirname(self.list_path))
        for entry in entries:
            self._make_folders(os.path.dirname(entry.path))
            self._write(entry)
            self.known[entry.path] = self.wanted(entry)
            # After each: what ends in the middle can be uninstalled, or installed again.
            self._keep()
        for path in set(self.known) - {one.path for one in entries}:
            if self.known[path][0] != "folder":
                if self.state(path) == self.known[path]:
                    self.place(path).unlink()
                del self.known[path]
        self._keep()
        return aside

    def _make_folders(self, folder):
        missing = []
        while folder != "/" and not self.place(folder).is_dir():
            missing.append(folder)
            folder = os.path.dirname(folder)
        for one in reversed(missing):
            self.place(one).mkdir()
            self.place(one).chmod(0o755)
            self.known[one] = ("folder", "-")

    def _write(self, entry):
        """A program that runs goes on with its old file."""
        place = self.place(entry.path)
        if entry.link:
            temporary = place.with_name(f".{place.name}.new")
            temporary.unlink(missing_ok=True)
            temporary.symlink_to(entry.link)
        else:
            with tempfile.NamedTemporaryFile(dir=place.parent, prefix=f".{place.name}.", delete=False) as file:
                temporary = pathlib.Path(file.name)
                file.write(entry.content)
            temporary.chmod(entry.mode)
        os.replace(temporary, place)

    def _keep(self):
        text = "".join(f"{kind} {value} {path}\n" for path, (kind, value) in sorted(self.known.items()))
        place = self.place(self.list_path)
        temporary = place.with_name(place.name + ".new")
        temporary.write_text(text)
        os.replace(temporary, place)

    # Taking out

    def uninstall(self):
        """Returns what is left because it was changed."""
        if not self.known:
            raise Refused(f"There is no list of installed files at {self.place(self.list_path)}. "
                          "Say the --prefix, --user or --destdir that it was installed with.")
        left = {}
        for path, one in self.known.items():
            state = self.state(path)
            if one[0] == "folder" or state is None:
                continue
            if state == one:
                self.place(path).unlink()
                self._remove_compiled(self.place(path))
            else:
                left[path] = one
        self.place(self.list_path).unlink()
        for path in sorted((path for path, one in self.known.items() if one[0] == "folder"), key=len, reverse=True):
            try:
                self.place(path).rmdir()
            except OSError:
                pass  # Something of somebody else's is in it.
        return sorted(left)

    @staticmethod
    def _remove_compiled(place):
        """What Python has written beside a module, where it could."""
        folder = place.parent / "__pycache__"
        if place.suffix == ".py" and folder.is_dir():
            for compiled in folder.glob(f"{place.stem}.cpython-*.pyc"):
                compiled.unlink()
            if not any(folder.iterdir()):
                folder.rmdir()
