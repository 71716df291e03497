#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The kernel and the initramfs that the virtual machines boot.

    tests/vm/boot_files.py             makes them where they are missing, prints their folder
    tests/vm/boot_files.py --newest    also takes a newer kernel if the package lists know one

They come from Debian's kernel package, which is unpacked, never installed: stock kernel, with the software RDMA driver
(rdma_rxe). Folder: $IBCOLL_VM_CACHE, else build/vm in the checkout. A second call finds them and needs no network."""

import fcntl
import hashlib
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("IBCOLL_VM_CACHE") or HERE.parent.parent / "build" / "vm")
META_PACKAGE = "linux-image-amd64"  # linux-image-cloud-amd64 has no RDMA modules

# Loaded in this order by the initramfs, each after what it depends on. Without crc32_generic, rdma_rxe fails with
# "failed to init crc32 algorithm err:-2".
MODULES = ["virtio_pci", "virtio_console", "virtio_net", "9pnet_virtio", "9p", "overlay", "crc32_generic", "veth",
           "sch_netem", "sch_tbf", "ib_uverbs", "rdma_ucm", "rdma_rxe"]


class FetchError(Exception):
    """A package cannot be had or does not hold what it should; the text says what to try."""


def run(*command, folder=None):
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise FetchError(f"'{' '.join(command)}' failed with status {done.returncode}:\n{done.stderr.strip()}")
    return done.stdout


def kernel_package():
    """Name of the newest kernel package, linux-image-VERSION-amd64."""
    depends = run("apt-cache", "depends", META_PACKAGE)
    found = re.findall(r"Depends: (linux-image-[0-9]\S*)", depends)
    if not found:
        raise FetchError(f"apt-cache names no kernel on which {META_PACKAGE} depends. Is this Debian on amd64, and has "
                         "'apt-get update' been called?")
    return found[0]


def unpack(package, folder):
    """Downloads `package` and unpacks it into folder/PACKAGE, which it returns. Installs nothing."""
    run("apt-get", "download", package, folder=folder)
    archives = list(folder.glob(f"{package}_*.deb"))
    if len(archives) != 1:
        raise FetchError(f"apt-get download {package} left {len(archives)} archives in {folder} instead of one")
    run("dpkg-deb", "-x", str(archives[0]), str(folder / package))
    return folder / package


def module_files(tree, version):
    """The files of MODULES and of all they depend on, in the order of loading."""
    run("depmod", "-b", str(tree), version)
    files = []
    for module in MODULES:
        for line in run("modprobe", "-d", str(tree), "-S", version, "--show-depends", module).splitlines():
            kind, _, path = line.partition(" ")
            if kind == "insmod" and path.strip() not in files:
                files.append(path.strip())
    return files


def plain_module(path):
    """Name and bytes of a module, decompressed."""
    path = Path(path)
    if path.suffix == ".xz":
        return path.stem, lzma.decompress(path.read_bytes())
    if path.suffix == ".ko":
        return path.name, path.read_bytes()
    raise FetchError(f"{path} is compressed in a way that is not known here")


def unpacked_kernel(image):
    """The ELF file inside a kernel image. QEMU starts it directly (PVH), which saves several seconds of unpacking in
    emulation at every boot. None where it cannot be had: the image itself boots as well."""
    content = Path(image).read_bytes()
    start = ((content[0x1F1] or 4) + 1) * 512 + int.from_bytes(content[0x248:0x24C], "little")
    if content[start:start + 6] != b"\xfd7zXZ\0":
        return None
    kernel = lzma.LZMADecompressor().decompress(content[start:])
    return kernel if kernel.startswith(b"\x7fELF") and b"\x12\0\0\0Xen\0" in kernel else None


def make_initramfs(busybox, modules, target):
    """A gzip'd cpio archive: busybox, the modules, and inside/init as /init."""
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        root = Path(name)
        for folder in ("bin", "modules", "proc", "sys", "dev", "lower", "upper", "root"):
            (root / folder).mkdir()
        shutil.copy(busybox, root / "bin" / "busybox")
        (root / "bin" / "sh").symlink_to("busybox")
        shutil.copy(HERE / "inside" / "init", root / "init")
        (root / "init").chmod(0o755)
        order = []
        for path in modules:
            file, content = plain_module(path)
            (root / "modules" / file).write_bytes(content)
            order.append(file)
        (root / "modules" / "order").write_text("\n".join(order) + "\n")
        with open(target, "wb") as archive:
            subprocess.run("find . | cpio --quiet -H newc -o | gzip -1", shell=True, cwd=root, stdout=archive,
                           check=True)


def fingerprint():
    """What the cached files depend on, beside the kernel."""
    digest = hashlib.sha256(" ".join(MODULES).encode())
    digest.update((HERE / "inside" / "init").read_bytes())
    digest.update(Path(__file__).read_bytes())
    return digest.hexdigest()


def make(package, cache):
    """Downloads and builds into cache/kernel and cache/initramfs."""
    with tempfile.TemporaryDirectory(dir=cache) as name:
        work = Path(name)
        work.chmod(0o755)
        tree = unpack(package, work)
        images = list((tree / "boot").glob("vmlinuz-*"))
        if len(images) != 1:
            raise FetchError(f"{package} holds {len(images)} kernel images instead of one")
        version = images[0].name.removeprefix("vmlinuz-")
        if not (tree / "lib").exists() and (tree / "usr" / "lib").exists():
            (tree / "lib").symlink_to("usr/lib")
        busybox = next((unpack("busybox-static", work)).glob("**/bin/busybox"), None)
        if busybox is None:
            raise FetchError("the package busybox-static holds no bin/busybox")
        make_initramfs(busybox, module_files(tree, version), work / "initramfs")
        kernel = unpacked_kernel(images[0])
        if kernel is not None:
            images[0].write_bytes(kernel)
        os.replace(images[0], cache / "kernel")
        os.replace(work / "initramfs", cache / "initramfs")
    (cache / "made").write_text(f"{package} {fingerprint()}\n")


def ensure(newest=False):
    """Makes what is missing or outdated. Returns (kernel, initramfs) as paths."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = (CACHE / "made").read_text().split() if (CACHE / "made").exists() else [None, None]
        package = kernel_package() if newest or made[0] is None else made[0]
        if made != [package, fingerprint()]:
            print(f"tests/vm: fetching {package} (about 70 MB) and busybox-static", file=sys.stderr, flush=True)
            try:
                make(package, CACHE)
            except FetchError:
                # A kernel that is cached by its name may have left the archive since.
                if kernel_package() == package:
                    raise
                make(kernel_package(), CACHE)
    return CACHE / "kernel", CACHE / "initramfs"


if __name__ == "__main__":
    try:
        print(ensure(newest=sys.argv[1:] == ["--newest"])[0].parent)
    except (FetchError, OSError, subprocess.SubprocessError) as error:
        sys.exit(f"tests/vm/boot_files.py: {error}")
