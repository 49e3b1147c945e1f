"""Stands for `python` in a command of a test: has the fork server at SOCKET run the
words in a child, with the descriptors, environment and folder of this process. Signals
go on to the child, the child's end comes back, and the child does not outlive it.

    python -I -S launcher.py SOCKET -m MODULE WORD ...
    python -I -S launcher.py SOCKET FILE WORD ...
"""

from __future__ import annotations

# `signal` and `socket` import enumerations, which is most of what they cost here.
import _signal  # type: ignore[import-not-found]
import _socket
import marshal
import os
import sys

PASSED_ON = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT)
STREAMS = (0, 1, 2)
LOST = 70


def request_child(server: _socket.socket) -> None:
    """Hand over all that makes a process. The server takes the descriptors with the
    first byte."""
    words = [os.fsencode(word) for word in sys.argv[2:]]
    body = marshal.dumps((words, dict(os.environb), os.getcwdb()))
    rights = b"".join(number.to_bytes(4, sys.byteorder) for number in STREAMS)
    server.sendmsg(
        [len(body).to_bytes(8, "big")],
        [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)],
    )
    server.sendall(body)


def end_alike(status: int) -> None:
    """End with this exit code, or by this signal."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        if -code != _signal.SIGKILL:
            _signal.signal(-code, _signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def main() -> None:
    server = _socket.socket(_socket.AF_UNIX)
    server.connect(sys.argv[1])
    # A signal that comes while the child begins is the child's, too.
    _signal.pthread_sigmask(_signal.SIG_BLOCK, PASSED_ON)
    request_child(server)
    for number in PASSED_ON:
        _signal.signal(number, lambda number, _: server.send(bytes([number])))
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, PASSED_ON)
    # A pipe ends with the child, not with this process.
    os.closerange(0, len(STREAMS))
    answer = server.recv(4)
    if not answer:
        os._exit(LOST)  # the fork server has died
    end_alike(int.from_bytes(answer, "big"))


main()
