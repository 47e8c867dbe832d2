"""`tacit serve` as a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import tacit


class ServerProcess:
    """A server that runs, where it listens, and the certificate it shows."""

    def __init__(self, policy: Path, *options: str) -> None:
        command = [sys.executable, "-m", "tacit.cli.main", "serve", "-p", str(policy), "--tls-self", *options]
        environment = {**os.environ, "TACIT_LOG": str(policy.with_suffix(".log"))}
        self.child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        self.said = ""
        assert self.child.stdout is not None
        for line in self.child.stdout:
            self.said += line
            if line.startswith("Stop with"):
                break
        else:
            raise AssertionError(self.said)
        self.ports = {scheme: int(port) for scheme, port in re.findall(r"on (\w+)://127.0.0.1:(\d+)", self.said)}
        self.cafile = policy.with_suffix(".tls.pem")

    def end(self, kind: signal.Signals) -> int:
        self.child.send_signal(kind)
        assert self.child.stdout is not None
        self.said += self.child.stdout.read()
        self.child.stdout.close()
        return self.child.wait(60)

    def connect(self, key: str, **options: object):
        return tacit.connect(f"https://127.0.0.1:{self.ports['https']}", key, cafile=self.cafile, **options)


@contextmanager
def run_server_process(policy: Path, *options: str):
    running = ServerProcess(policy, "--http", "0", "--postgres", "0", *options)
    try:
        yield running
    finally:
        if running.child.poll() is None:
            running.end(signal.SIGKILL)
