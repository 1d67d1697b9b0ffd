"""Starts commands as copies of this process, which has imported what they need.

``processes.py`` runs this file with the number of a socket. A message there is a command, with the
files of its standard streams. The answers are the number of the process, then its exit status.
"""

import contextlib
import gc
import io
import json
import os
import signal
import socket
import sys
import tempfile

from mixnorm.cli import main


def serve(connection):
    """Start commands until there are no more; in the process of a command, return its words."""
    while True:
        message, files, *_ = socket.recv_fds(connection, 1 << 16, 3)
        if not message:
            return None
        process = os.fork()
        if process == 0:
            connection.close()
            return prepare(files, **json.loads(message))
        for file in files:
            os.close(file)
        connection.sendall(b"%d\n" % process)
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))


def prepare(files, words, folder, closed):
    """Make this process what a shell starts, and return the words of its command."""
    for name in ("SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    for stream, file in enumerate(files):
        os.dup2(file, stream)
        os.close(file)
    for stream, name in enumerate(("stdin", "stdout", "stderr")):
        if stream in closed:  # Python has None for a stream that was closed before it started
            os.close(stream)
            file = None
        else:
            file = open(stream, "w" if stream else "r", encoding="utf-8", closefd=False)  # noqa: SIM115
        setattr(sys, name, file)
    return words


def warm():
    """Run commands, after which all is imported that they need, and all loops are compiled."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        table, model = f"{folder}/t.csv", f"{folder}/m"
        with open(table, "w") as file:
            file.write("x,y\n" + "1,a\n2,b\n" * 20)
        for words in (
            ["fit", table, "-t", "y", "-m", model, "-q"],
            ["predict", model, table, "-q"],
            ["stream", table, "-t", "y", "-m", f"{folder}/s", "-q"],
        ):
            assert main(words) == 0


if __name__ == "__main__":
    warm()
    gc.freeze()
    words = serve(socket.socket(fileno=int(sys.argv[1])))
    if words is not None:
        sys.exit(main(words))
