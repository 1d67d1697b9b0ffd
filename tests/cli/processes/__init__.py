"""Commands in processes of their own, without the two seconds that Python takes to import them."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path


class Process:
    """A command that runs, with the other ends of its standard streams.

    Attributes
    ----------
    pid : int
        The number of the process.
    stdin, stdout : file
        What it reads and writes; None for a stream that was given.
    """

    def __init__(self, answers, stdin, stdout, errors):
        self.pid = int(answers.readline())
        self.stdin, self.stdout = stdin, stdout
        self._answers, self._errors = answers, errors

    def send_signal(self, number):
        """Send a signal to the process."""
        os.kill(self.pid, number)

    def finish(self, text=b""):
        """Write the rest of its input; return its exit status, the rest of its output, its errors.

        The exit status is that of :class:`subprocess.Popen`.
        """
        if text:
            self.stdin.write(text)
        self.stdin.close()
        out = b"" if self.stdout is None or self.stdout.closed else self.stdout.read()
        status = int(self._answers.readline())
        if self.stdout is not None:
            self.stdout.close()
        self._errors.seek(0)
        errors = self._errors.read()
        self._errors.close()
        return status, out, errors


class Server:
    """A process that starts commands; see ``server.py``."""

    def __init__(self):
        self._socket, other = socket.socketpair()
        with other:
            self._process = subprocess.Popen(
                [sys.executable, Path(__file__).with_name("server.py"), str(other.fileno())],
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # an interrupt of the tests is not for this process
            )
        self._answers = self._socket.makefile("rb")

    def start(self, *words, folder, stdout=None, stderr=None, closed=()):
        """Start a command in a folder; the one before must have finished.

        Parameters
        ----------
        *words : str or path
            What follows ``mixnorm``.
        folder : path
            The folder in which the command runs.
        stdout, stderr : file, optional
            Where its output goes, if not to the process that is returned.
        closed : sequence of int
            Standard streams that are closed.
        """
        reading, stdin = os.pipe()
        out, errors = None, tempfile.TemporaryFile()  # noqa: SIM115
        if stdout is None:
            out, writing = os.pipe()
        else:
            writing = os.dup(stdout.fileno())
        order = {"words": [str(word) for word in words], "folder": str(folder), "closed": closed}
        files = [reading, writing, (errors if stderr is None else stderr).fileno()]
        socket.send_fds(self._socket, [json.dumps(order).encode()], files)
        os.close(reading)
        os.close(writing)
        out = None if out is None else os.fdopen(out, "rb")
        return Process(self._answers, os.fdopen(stdin, "wb"), out, errors)

    def close(self):
        """End the process."""
        self._answers.close()
        self._socket.close()
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()
