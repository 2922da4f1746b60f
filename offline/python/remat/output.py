"""Files that the user names, written by the rules of tracer/output.h: whole or not at all, past no link and over no file that another user can have laid there."""
from __future__ import annotations

import errno
import os
import secrets
import stat
from typing import Optional, Union

LINKS = 40


def write(path: Union[str, "os.PathLike[str]"], data: bytes) -> None:
    """OSError: the old file stands."""
    name = os.fspath(path)
    folder, last, there = _find(name)
    try:
        above = os.fstat(folder)
        if there and above.st_mode & stat.S_ISVTX and above.st_mode & 0o022 and there.st_uid not in (os.geteuid(), above.st_uid):
            raise PermissionError(errno.EACCES, "it is another user's, in a folder that others may write to", name)
        if there and not stat.S_ISREG(there.st_mode):  # a device, a pipe: as it is
            with os.fdopen(os.open(last, os.O_WRONLY | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=folder), "wb") as f:
                f.write(data)
            return
        if there and not os.access(last, os.W_OK, dir_fd=folder, effective_ids=True):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        _replace(folder, last, there, data)
    finally:
        os.close(folder)


def _replace(folder: int, last: str, there: Optional[os.stat_result], data: bytes) -> None:
    """A new file beside it, of a name that nobody can foretell, in its place. The permissions of the user's own file stay, 0777 of them."""
    own = there is not None and there.st_uid == os.geteuid()
    beside = ".remat-%s.tmp" % secrets.token_hex(8)
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600 if own else 0o666, dir_fd=folder)
    try:
        with os.fdopen(fd, "wb") as f:
            if there is not None and own:
                mode = there.st_mode & 0o777
                try:
                    os.fchown(fd, -1, there.st_gid)
                except OSError:  # what that group may do is for it alone
                    mode &= ~0o070 | (mode & 0o007) << 3
                os.fchmod(fd, mode)
            f.write(data)
        os.replace(beside, last, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(beside, dir_fd=folder)
        raise


def _find(name: str) -> "tuple[int, str, Optional[os.stat_result]]":
    """The folder, opened, the last part of the name, and what stands there; links are followed as tracer/place.c does."""
    rest, links = name, 0
    at = os.open("/" if name.startswith("/") else ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        while True:
            part, more, rest = rest.lstrip("/").partition("/")
            if not part or (not more and part in (".", "..")):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
            try:
                fd = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            except FileNotFoundError:
                if more:
                    raise
                return at, part, None
            try:
                st = os.fstat(fd)
                if stat.S_ISLNK(st.st_mode):
                    above, links = os.fstat(at), links + 1
                    if above.st_mode & stat.S_IWOTH and st.st_uid not in (os.geteuid(), above.st_uid):
                        raise PermissionError(errno.EACCES, "a link of another user's, in a folder that everybody may write to, is not followed", name)
                    if links > LINKS:
                        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
                    to = os.readlink("", dir_fd=fd)
                    rest = to + more + rest
                    if to.startswith("/"):
                        at, fd = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC), _shut(fd, at)
                elif more:
                    if not stat.S_ISDIR(st.st_mode):
                        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
                    at, fd = fd, at
                elif stat.S_ISDIR(st.st_mode):
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
                else:
                    return at, part, st
            finally:
                os.close(fd)
    except BaseException:
        os.close(at)
        raise


def _shut(link: int, folder: int) -> int:
    """The folder is left for the root; what is still to be closed."""
    os.close(link)
    return folder
