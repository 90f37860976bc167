/**
 * Run by the box's Python: unpacks an archive from standard input into a folder. Writes nothing through a link or
 * outside of the folder, makes no device and sets no bit that lends rights; bytes, entries and depth are bounded.
 * Prints what it left out as one line of JSON.
 */
export const UNPACK = `
import sys, os, json, tarfile, zipfile, gzip, bz2, lzma, subprocess, shutil, stat
into, limit_bytes, limit_entries = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
base = os.path.dirname(into)
store = os.path.join(base, "archive")
told = {"kind": None, "entries": 0, "bytes": 0, "packed": 0, "stopped": None, "left_out": []}
class Stop(Exception): pass
def leave(name, why):
    if len(told["left_out"]) < 200: told["left_out"].append([name[:400], why])
def fail(text):
    print(json.dumps({"error": text})); sys.exit(0)
with open(store, "wb") as out:
    while True:
        piece = sys.stdin.buffer.read(1 << 20)
        if not piece: break
        told["packed"] += len(piece); out.write(piece)
os.makedirs(into, exist_ok=True)
def target(name):
    "The place of an entry, with real folders above it; None where it leads out."
    if "\\0" in name: leave(name, "nul"); return None
    parts = [p for p in name.replace("\\\\", "/").split("/") if p not in ("", ".")] if zipped else [p for p in name.split("/") if p not in ("", ".")]
    if name.startswith("/") or ".." in parts or (zipped and len(name) > 1 and name[1] == ":"): leave(name, "outside"); return None
    if not parts: return None
    if len(parts) > 200: leave(name, "deep"); return None
    at = into
    for part in parts[:-1]:
        at = os.path.join(at, part)
        try: kind = os.lstat(at).st_mode
        except FileNotFoundError:
            os.mkdir(at, 0o755); continue
        except OSError: leave(name, "name"); return None
        if stat.S_ISLNK(kind): leave(name, "link"); return None
        if not stat.S_ISDIR(kind): leave(name, "twice"); return None
    return os.path.join(at, parts[-1])
def count():
    told["entries"] += 1
    if told["entries"] > limit_entries: told["stopped"] = "entries"; raise Stop()
def fresh(at, name):
    try: kind = os.lstat(at).st_mode
    except FileNotFoundError: return True
    except OSError: leave(name, "name"); return False
    leave(name, "twice")
    if stat.S_ISDIR(kind): return False
    os.unlink(at); return True
def put(source, at, mode):
    with open(at, "xb") as out:
        while True:
            piece = source.read(1 << 18)
            if not piece: break
            told["bytes"] += len(piece)
            if told["bytes"] > limit_bytes or (told["bytes"] > limit_bytes >> 2 and told["bytes"] > 200 * told["packed"]): told["stopped"] = "bytes"; raise Stop()
            out.write(piece)
    os.chmod(at, 0o755 if mode & 0o111 else 0o644)
def unzip(path):
    with zipfile.ZipFile(path) as z:
        for info in z.infolist():
            count()
            mode = info.external_attr >> 16
            name = info.filename
            at = target(name)
            if at is None: continue
            if info.flag_bits & 1: fail("it is encrypted")
            if mode & 0o6000: leave(name, "rights")
            if name.endswith("/"):
                if not os.path.isdir(at) or os.path.islink(at):
                    if fresh(at, name): os.mkdir(at)
                continue
            if not fresh(at, name): continue
            try:
                with z.open(info) as source:
                    if stat.S_ISLNK(mode): os.symlink(source.read(4096), os.fsencode(at))
                    elif stat.S_IFMT(mode) in (0, stat.S_IFREG): put(source, at, mode)
                    else: leave(name, "device")
            except (OSError, zipfile.BadZipFile, NotImplementedError, EOFError, zlib_error) as e: leave(name, "unreadable")
def untar(stream):
    with tarfile.open(fileobj=stream, mode="r|", errorlevel=1) as t:
        for info in t:
            count()
            at = target(info.name)
            if at is None: continue
            if info.mode & 0o6000: leave(info.name, "rights")
            if info.isdir():
                if not os.path.isdir(at) or os.path.islink(at):
                    if fresh(at, info.name): os.mkdir(at)
                continue
            if not fresh(at, info.name): continue
            try:
                if info.issym(): os.symlink(info.linkname, at)
                elif info.islnk():
                    old = target(info.linkname)
                    if old is not None and os.path.isfile(old) and not os.path.islink(old): os.link(old, at)
                    else: leave(info.name, "outside")
                elif info.isreg(): put(t.extractfile(info), at, info.mode)
                else: leave(info.name, "device")
            except OSError: leave(info.name, "name")
class Zst:
    def __enter__(self):
        code = "const z=require('zlib');require('stream').pipeline(require('fs').createReadStream(process.argv[1]),z.createZstdDecompress(),process.stdout,e=>process.exit(e?1:0))"
        self.p = subprocess.Popen(["node", "-e", code, store], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return self.p.stdout
    def __exit__(self, *a): self.p.kill(); self.p.wait()
import zlib
zlib_error = zlib.error
head = open(store, "rb").read(600)
zipped = head[:4] in (b"PK\\x03\\x04", b"PK\\x05\\x06")
kinds = [(b"\\x1f\\x8b", "tar.gz", lambda: gzip.open(store, "rb")), (b"BZh", "tar.bz2", lambda: bz2.open(store, "rb")), (b"\\xfd7zXZ", "tar.xz", lambda: lzma.open(store, "rb")), (b"\\x28\\xb5\\x2f\\xfd", "tar.zst", Zst)]
try:
    if zipped: told["kind"] = "zip"; unzip(store)
    else:
        row = next((k for k in kinds if head.startswith(k[0])), None)
        if row:
            told["kind"] = row[1]
            with row[2]() as stream: untar(stream)
        elif head[257:262] == b"ustar" or (len(head) >= 512 and tarfile.is_tarfile(store)):
            told["kind"] = "tar"
            with open(store, "rb") as stream: untar(stream)
            gem = os.path.join(into, "data.tar.gz")
            if os.path.isfile(gem) and os.path.isfile(os.path.join(into, "metadata.gz")) and not os.path.islink(gem):
                os.rename(gem, store); told["kind"] = "gem"
                with gzip.open(store, "rb") as stream: untar(stream)
        else: fail("it is not a zip or tar archive (plain, gz, bz2, xz or zst)" if told["packed"] else "it is empty")
except Stop: pass
except (tarfile.TarError, zipfile.BadZipFile, EOFError, lzma.LZMAError, zlib_error, gzip.BadGzipFile, OSError, ValueError, RuntimeError) as e:
    if told["entries"] == 0: fail("it cannot be read: %s" % e)
    told["stopped"] = told["stopped"] or "broken"
finally:
    try: os.unlink(store)
    except OSError: pass
if told["entries"] == 0 and told["stopped"] is None: fail("there is nothing in it")
print(json.dumps(told))
`;
