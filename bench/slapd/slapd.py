"""OpenLDAP's slapd from Debian, with a database of LMDB, by itself or under `pawl run`: for the
benchmark and the tests."""

import os
import shutil
import signal
import socket
import subprocess
import time

import ldap
import ldap.modlist

PROGRAM = "/usr/sbin/slapd"
SCHEMAS = "/etc/ldap/schema"
MODULES = "/usr/lib/ldap"
BASE = "dc=example,dc=org"
ADMIN = "cn=admin," + BASE
DATABASE = "data.mdb"  # its name
MAP_BYTES = 256 << 20
START_SECONDS_MAX = 60

CONFIGURATION = """\
include {schemas}/core.schema
include {schemas}/cosine.schema
modulepath {modules}
moduleload back_mdb
pidfile {directory}/pid
argsfile {directory}/args
threads 4
database mdb
suffix "{base}"
rootdn "{admin}"
rootpw secret
directory {directory}/db
maxsize {map_bytes}
{flags}
index cn,sn eq
"""


class DoesNotStart(Exception):
    pass


def prepare(directory, environment_flags):
    """A new directory for slapd, which takes no blank in its name.  `environment_flags` are LMDB's
    (writemap, nosync, mapasync), or empty."""
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(os.path.join(directory, "db"))
    flags = "envflags " + environment_flags if environment_flags else ""
    with open(os.path.join(directory, "slapd.conf"), "w", encoding="utf-8") as file:
        file.write(CONFIGURATION.format(schemas=SCHEMAS, modules=MODULES, directory=directory,
                                        base=BASE, admin=ADMIN, map_bytes=MAP_BYTES, flags=flags))


class Server:
    """slapd in a directory that was prepared, at a free port.  `pawl` is the command to run it
    under, or "none"."""

    def __init__(self, pawl, directory):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = f"ldap://127.0.0.1:{free.getsockname()[1]}"
        self.log = os.path.join(directory, "slapd.log")
        under = [] if pawl == "none" else [pawl, "run", "--atomic", DATABASE, "--"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*under, PROGRAM, "-d", "0", "-f", os.path.join(directory, "slapd.conf"), "-h",
                 self.url], stdout=log, stderr=log)

    def connect(self):
        """Waits until it answers."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            connection = ldap.initialize(self.url)
            try:
                connection.simple_bind_s(ADMIN, "secret")
                return connection
            except ldap.SERVER_DOWN as down:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    with open(self.log, encoding="utf-8", errors="replace") as log:
                        raise DoesNotStart("slapd does not start: " + log.read()[-2000:]) from down
                time.sleep(0.02)

    def make_base(self):
        connection = self.connect()
        connection.add_s(BASE, ldap.modlist.addModlist({
            "objectClass": [b"dcObject", b"organization"], "dc": [b"example"], "o": [b"Example"]}))
        connection.unbind_s()

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def dn(name):
    return f"cn={name},{BASE}"


def person(name, description):
    return ldap.modlist.addModlist({
        "objectClass": [b"person"], "cn": [name.encode()], "sn": [description[:8].encode()],
        "description": [description.encode()]})


def new_description(description):
    return [(ldap.MOD_REPLACE, "description", description.encode()),
            (ldap.MOD_REPLACE, "sn", description[:8].encode())]
