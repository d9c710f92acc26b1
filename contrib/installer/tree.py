"""File operations that are safe to run as root: a path that another user could change is refused.

Every path is walked from the root directory by descriptors (openat(2)), so that a folder cannot be replaced by a link after it was
checked.
"""
import contextlib
import errno
import hashlib
import itertools
import os
import secrets
import stat

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# The flags for folders along a path, which need not be readable.
_PASSED = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40
# Debian's group for /usr/local, whose members may install there anyway.
_STAFF = 50


class Refused(Exception):
    """A path is refused and nothing more is changed. The message names the file and says what to do."""


class Tree:
    """A directory tree below `destination`, the root of the target system. Paths begin with / and contain no `.` or `..`.

    Inside `destination` (or, if it is empty, inside one of `roots`) no links are followed when running as root. Outside of it, and
    for other users everywhere, links that belong to root or the current user are followed.
    """

    def __init__(self, destination, roots):
        self.destination = destination.rstrip("/")
        self._insides = [self.destination + "/"] if self.destination else [root.rstrip("/") + "/" for root in roots]
        self.user = os.geteuid()

    def full(self, path):
        return self.destination + path

    # Reading

    def state(self, path):
        """Returns `(kind, value)` of a path, as in the list of installed files; None if it does not exist."""
        with self._folder_of(path) as (folder, name):
            if folder is None:
                return None
            try:
                facts = os.lstat(name, dir_fd=folder)
                if stat.S_ISLNK(facts.st_mode):
                    return "link", os.readlink(name, dir_fd=folder)
                if stat.S_ISREG(facts.st_mode):
                    return "file", hashlib.sha256(self._content(folder, name)[0]).hexdigest()
                return ("folder" if stat.S_ISDIR(facts.st_mode) else "other"), "-"
            except FileNotFoundError:
                return None

    def read_own(self, path):
        """Returns the text of a file, or None if it is missing. Raises `Refused` if another user could have written the file."""
        with self._folder_of(path) as (folder, name):
            if folder is None:
                return None
            try:
                content, facts = self._content(folder, name)
            except FileNotFoundError:
                return None
            except OSError as problem:
                raise Refused(f"{self.full(path)} is not read: {problem.strerror}; check it, and remove it") from None
            self._check_owner(facts, self.full(path))  # guard: install-list-owner
            if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
                raise Refused(f"{self.full(path)} is not read: it is not a regular file with a single link; check it, and remove it")
            return content.decode("utf-8", "surrogateescape")

    # Writing

    def make_folder(self, path):
        """Creates a folder and its missing ancestors with mode 0755 under any umask. Returns the paths of the created folders."""
        missing = []
        while path != "/" and self.state(path) is None:
            missing.append(path)
            path = os.path.dirname(path)
        for one in reversed(missing):
            with self._folder_of(one) as (folder, name):
                os.mkdir(name, 0o755, dir_fd=folder)
                with _opened(name, _FOLDER, folder) as made:
                    os.fchmod(made, 0o755)
        return missing[::-1]

    def write(self, path, content, mode):
        """Replaces a file atomically. A running program continues to use its old file."""
        with self._folder_of(path, must_be=True) as (folder, name):
            temporary = _temporary(name)
            with _opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, folder) as file:
                try:
                    rest = memoryview(content)
                    while rest:
                        rest = rest[os.write(file, rest):]
                    os.fchmod(file, mode)
                    os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
                except BaseException:
                    os.unlink(temporary, dir_fd=folder)
                    raise

    def link(self, path, target):
        with self._folder_of(path, must_be=True) as (folder, name):
            temporary = _temporary(name)
            os.symlink(target, temporary, dir_fd=folder)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)

    def set_aside(self, path):
        """Renames a file to its first free `.set-aside` name; returns the new path."""
        with self._folder_of(path, must_be=True) as (folder, name):
            endings = itertools.chain([".set-aside"], (f".set-aside.{number}" for number in itertools.count(1)))
            ending = next(ending for ending in endings if not _is_there(name + ending, folder))
            os.rename(name, name + ending, src_dir_fd=folder, dst_dir_fd=folder)
            return path + ending

    def remove(self, path):
        with self._folder_of(path) as (folder, name):
            os.unlink(name, dir_fd=folder)
            if name.endswith(".py"):
                self._remove_compiled(folder, name.removesuffix(".py"))

    def remove_folder(self, path):
        """Removes a folder if it is empty."""
        with self._folder_of(path) as (folder, name), contextlib.suppress(OSError):
            if folder is not None:
                os.rmdir(name, dir_fd=folder)

    @staticmethod
    def _remove_compiled(folder, stem):
        """Removes the bytecode that Python may have written for a module."""
        with contextlib.suppress(OSError):
            with _opened("__pycache__", _FOLDER, folder) as cache:
                for name in os.listdir(cache):
                    if name.startswith(f"{stem}.cpython-") and name.endswith(".pyc"):
                        os.unlink(name, dir_fd=cache)
            os.rmdir("__pycache__", dir_fd=folder)

    # Walking

    @contextlib.contextmanager
    def _folder_of(self, path, must_be=False):
        """Yields a descriptor of the parent folder (None if it is missing) and the last component of `path`."""
        folder, name = os.path.split(path)
        try:
            descriptor = self._walk(folder)
        except FileNotFoundError:
            if must_be:
                raise
            yield None, name
            return
        try:
            yield descriptor, name
        except PermissionError as problem:
            raise PermissionError(problem.errno, problem.strerror, self.full(path)) from None
        finally:
            os.close(descriptor)

    def _walk(self, path):
        # The remaining components; the opened folders, for `..` in link targets; the current path, for messages.
        names, gone, here = _names(self.full(path)), [os.open("/", _PASSED)], "/"
        links = 0
        try:
            self._check_folder(gone[-1], here)
            while names:
                name = names.pop(0)
                if name == "..":
                    if len(gone) > 1:
                        os.close(gone.pop())
                    here = os.path.dirname(here)
                    continue
                there = os.path.join(here, name)
                try:
                    gone.append(os.open(name, _PASSED, dir_fd=gone[-1]))
                except OSError as problem:
                    if problem.errno not in (errno.ELOOP, errno.ENOTDIR):
                        problem.filename = there
                        raise
                    links += 1
                    if links > _MOST_LINKS:
                        raise Refused(f"{there}: too many levels of symbolic links") from None
                    target = self._link(gone[-1], name, there)
                    if target.startswith("/"):
                        while len(gone) > 1:
                            os.close(gone.pop())
                        here = "/"
                    names[:0] = _names(target)
                    continue
                here = there
                self._check_folder(gone[-1], here)
            return gone.pop()
        finally:
            for descriptor in gone:
                os.close(descriptor)

    def _link(self, folder, name, there):
        """Returns the target of a link, or raises `Refused` if it must not be followed."""
        facts = os.lstat(name, dir_fd=folder)
        if not stat.S_ISLNK(facts.st_mode):
            raise Refused(f"{there} is not a folder; move it away")
        is_inside = any(there.startswith(inside) for inside in self._insides)
        if facts.st_uid not in (0, self.user) or self.user == 0 and is_inside:  # guard: install-folder-link
            raise Refused(f"{there} is a symbolic link, which is not followed; remove it, or choose another --prefix")
        return os.readlink(name, dir_fd=folder)

    def _check_folder(self, descriptor, path):
        """Raises `Refused` if other users could replace files in a folder. They cannot in a sticky folder, such as /tmp."""
        facts = os.fstat(descriptor)
        if not facts.st_mode & stat.S_ISVTX:
            self._check_owner(facts, path)  # guard: install-folder-owner
        elif facts.st_uid not in (0, self.user):
            self._check_owner(facts, path)

    def _check_owner(self, facts, path):
        if facts.st_uid not in (0, self.user):
            raise Refused(f"{path} belongs to user {facts.st_uid}, who could change it; give it to root (chown), or "
                          "choose another --prefix")
        others = stat.S_IWOTH
        # A user's own group usually has no other members; root's files are checked more strictly.
        if self.user == 0 and facts.st_gid not in (0, _STAFF):
            others |= stat.S_IWGRP
        if facts.st_mode & others:
            raise Refused(f"{path} can be changed by other users (mode {stat.S_IMODE(facts.st_mode):04o}); check "
                          f"its contents, and run: chmod go-w '{path}'")

    @staticmethod
    def _content(folder, name):
        """Returns the contents and status of a regular file. Never follows a link or blocks on a pipe."""
        with _opened(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, folder) as file:
            facts, pieces = os.fstat(file), []
            while stat.S_ISREG(facts.st_mode) and (piece := os.read(file, 1 << 20)):
                pieces.append(piece)
            return b"".join(pieces), facts


def _names(path):
    return [name for name in path.split("/") if name not in ("", ".")]


def _is_there(name, folder):
    try:
        os.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        return False
    return True


def _temporary(name):
    """Returns an unpredictable name, shorter than NAME_MAX."""
    return f".{name[:200]}.{secrets.token_hex(8)}"


@contextlib.contextmanager
def _opened(name, flags, folder):
    descriptor = os.open(name, flags, 0o600, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
