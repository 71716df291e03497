# SPDX-License-Identifier: BSD-3-Clause
"""What the scripts of perf write, and how they end."""

import argparse
import contextlib
import errno
import math
import os
import pathlib
import signal
import sys
import tempfile


def _file(path):
    """The file that is replaced, at the end of symbolic links; None: a device or a pipe (also /dev/fd/63 of a shell), which is
    written directly."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return pathlib.Path(os.path.realpath(path)) if path.is_file() or not path.exists() else None


@contextlib.contextmanager
def _beside(path):
    """The name of a new file beside `path`, which is removed unless it was renamed."""
    handle, name = tempfile.mkstemp(prefix=path.name + ".", dir=path.parent)
    os.close(handle)
    try:
        yield name
    finally:
        pathlib.Path(name).unlink(missing_ok=True)


def target(text):
    """The type of an option that names a file to write: it is tried before the work."""
    path = pathlib.Path(text)
    try:
        file = _file(path)
        if file:
            with _beside(file):
                pass
    except OSError as problem:
        raise argparse.ArgumentTypeError(f"cannot write {text}: {problem.strerror}") from problem
    return path


def write(path, text):
    """Writes beside the file and renames: the old one stays where that fails."""
    try:
        file = _file(path)
        if not file:
            path.write_text(text, encoding="utf-8")
            return
        mask = os.umask(0)
        os.umask(mask)
        mode = file.stat().st_mode & 0o7777 if file.exists() else 0o666 & ~mask
        with _beside(file) as name:
            with open(name, "w", encoding="utf-8", newline="") as beside:
                os.fchmod(beside.fileno(), mode)
                beside.write(text)
                beside.flush()
                os.fsync(beside.fileno())
            os.replace(name, file)
    except OSError as problem:
        raise OSError(problem.errno, problem.strerror, str(path)) from problem


def seconds(text):
    """The type of an option: NaN and infinity are no times."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def exit_at_signals():
    """So that what has been started ends first, and what has been made is removed."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:  # else ignored, as under nohup
            signal.signal(number, lambda number, _: sys.exit(128 + number))


def _end(name, main, problems):
    try:
        status = main()
    except problems as problem:
        status = f"{name}: {problem}"
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    except SystemExit as end:  # --help, a mistake in the options, SIGTERM
        status = end.code
    print(end="", flush=True)
    return status


def run(name, main, *problems):
    """Runs main() and ends the program with its status. An exception of the types `problems`, and what cannot be written, is
    one line; a reader that leaves (`| head`) is none."""
    exit_at_signals()
    try:
        status = _end(name, main, problems)
    except BrokenPipeError:
        status = 128 + signal.SIGPIPE
    except OSError as problem:
        status = f"{name}: {f'{problem.filename}: ' if problem.filename else 'standard output: '}{problem.strerror}"
    with contextlib.suppress(OSError):
        print(end="", flush=True)
        sys.exit(status)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more
    sys.exit(status)
