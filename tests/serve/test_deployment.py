"""What is shipped is known by its hash, and the files of a deployment do what its page says."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
import tomllib
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import psycopg
import pytest
from tests.support.ports import find_free_port
from tests.support.server_process import run_server_process

import tacit
from tacit.serve.tls import load_self_signed

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def test_the_vendored_script_is_the_one_that_was_recorded():
    static = files("tacit.serve.console") / "static"
    recorded = tomllib.loads((files("tacit.serve.console") / "vendored.toml").read_text("utf-8"))
    for name, about in recorded.items():
        data = (static / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == about["sha256"]
        assert f'version:"{about["version"]}"'.encode() in data
        assert (static / about["license"]).is_file()
    minified = {each.name for each in static.iterdir() if ".min." in each.name}
    assert minified <= set(recorded)


def test_every_requirement_of_a_deployment_has_its_hashes_and_names_no_registry():
    text = (ROOT / "requirements" / "serve.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    assert "://" not in text and "--index-url" not in text and "--find-links" not in text and "file:" not in text
    entries = re.split(r"\n(?=\S)", "\n".join(lines))
    pinned = {}
    for entry in entries:
        name, version = re.match(r"([a-z0-9-]+)==([^ ;\\]+)", entry).groups()
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), name
        pinned[name] = version
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    for wanted in [
        *project["dependencies"],
        *extras["serve"],
        *extras["postgres"],
        *extras["fast"],
        *extras["catalog"],
        *extras["oidc"],
    ]:
        assert re.match(r"[A-Za-z0-9-]+", wanted)[0].lower() in pinned, wanted


def need(program: str) -> str:
    """Where a program is; a machine without it skips what needs it, and says so."""
    found = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if found is None:
        (pytest.fail if os.environ.get("TACIT_NOTHING_SKIPPED") == "1" else pytest.skip)(f"no {program} here")
    return found


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    verify = need("systemd-analyze")
    unit = tmp_path / "tacit.service"
    text = (ROOT / "deploy" / "tacit.service").read_text("utf-8")
    unit.write_text(text.replace("/opt/tacit/bin/tacit", str(Path(sys.executable).parent / "tacit")))
    found = subprocess.run([verify, "verify", unit], capture_output=True, text=True, check=False, timeout=60)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
    unit.write_text(unit.read_text().replace("ProtectSystem=strict", "ProtectSystem=always"))
    found = subprocess.run([verify, "verify", unit], capture_output=True, text=True, check=False, timeout=60)
    assert "always" in found.stderr  # so it would have said


@contextmanager
def running_nginx(folder: Path, changes: dict[str, str]):
    """nginx with the shipped configuration, other paths and ports put in."""
    text = (ROOT / "deploy" / "nginx.conf").read_text("utf-8")
    for before, after in changes.items():
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    (folder / "nginx.conf").write_text(f"pid {folder}/nginx.pid;\nerror_log stderr;\n" + text)
    command = [need("nginx"), "-c", folder / "nginx.conf", "-g", "daemon off;"]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield child
    finally:
        child.terminate()
        child.communicate(timeout=60)


def temporary_files(folder: Path) -> str:
    """Where nginx may write without being root."""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    return "access_log off;\n" + "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)


def wait_for(port: int) -> None:
    for _ in range(200):
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"nobody listens on {port}")


def test_nginx_stands_before_both_doors(clinic, tmp_path):
    need("nginx")
    web, wire = find_free_port(), find_free_port()
    front = load_self_signed(tmp_path / "front.toml", "127.0.0.1")
    ada = clinic.secrets["ada"]
    with run_server_process(clinic.policy, "--insecure-behind-proxy", "--proxy-protocol") as server:
        changes = {
            "http {\n": "http {\n" + temporary_files(tmp_path),
            "listen 443 ssl": f"listen 127.0.0.1:{web} ssl",
            "/etc/tls/full.pem": str(front.certificate),
            "/etc/tls/key.pem": str(front.key),
            "https://127.0.0.1:8080": f"https://127.0.0.1:{server.ports['https']}",
            "/srv/clinic/clinic.tls.pem": str(server.cafile),
            "listen 5432": f"listen 127.0.0.1:{wire}",
            "proxy_pass 127.0.0.1:5433": f"proxy_pass 127.0.0.1:{server.ports['postgresql']}",
        }
        with running_nginx(tmp_path, changes):
            wait_for(web), wait_for(wire)
            with tacit.connect(f"https://127.0.0.1:{web}", ada.key, cafile=front.certificate) as far:
                found = far.ask("SELECT COUNT(*) AS n FROM visits", epsilon=0.5)
                with pytest.raises(tacit.Refused, match="raw-column"):
                    far.ask("SELECT age FROM visits", epsilon=0.5)
            with psycopg.connect(
                host="127.0.0.1",
                port=wire,
                user="ada",
                password=ada.password,
                dbname="clinic",
                sslmode="verify-full",
                sslrootcert=str(server.cafile),
                channel_binding="require",  # which TLS that ended on the way would break
                autocommit=True,
            ) as connection:
                connection.execute("SET tacit.epsilon = 0.5")
                assert connection.execute("SELECT COUNT(*) AS n FROM visits").fetchone() == (found.value,)
            context = ssl.create_default_context(cafile=front.certificate)
            with (
                socket.create_connection(("127.0.0.1", web)) as plain,
                context.wrap_socket(plain, server_hostname="127.0.0.1") as line,
            ):
                line.sendall(b"GET /healthz HTTP/1.0\r\nHost: clinic.example\r\n\r\n")
                assert b"200 OK" in line.recv(65536)


def test_the_container_asks_itself_and_has_no_rights():
    text = (ROOT / "deploy" / "Containerfile").read_text("utf-8")
    assert re.search(r"^USER tacit$", text, re.MULTILINE) and "--require-hashes" in text
    check = re.search(r'"python", "-c", \\\n  "(.*)"\]$', text, re.MULTILINE)[1]
    compile(check, "healthcheck", "exec")
    assert "/healthz" in check and text.index("USER tacit") < text.index('CMD ["tacit"')
