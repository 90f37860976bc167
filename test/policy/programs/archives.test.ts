import { describe } from "node:test";
import { tells } from "./told.ts";

describe("tar", () => {
  tells({
    "tar -tzf a.tgz": "allow; read a.tgz",
    "tar tf a.tar src/": "allow; read a.tar",
    "tar tfv a.tar": "allow; read a.tar",
    "tar --list --file a.tar": "allow; read a.tar",
    "tar tf - < a.tar": "allow; read a.tar",
    "tar xf a.tar": "ask; read a.tar; write .",
    "tar xf a.tar -C /tmp/x": "ask; read a.tar; write /tmp/x",
    "tar xfC a.tar src": "ask; read a.tar; write src",
    "tar xf a.tar b -C /etc": "ask; read a.tar; write .; write /etc",
    "tar -xOf a.tar b": "allow; read a.tar",
    "tar xPf a.tar": "ask; read a.tar; write .; write ?",
    "tar xf a.tar --transform s/a/b/": "ask; read a.tar; write .; write ?",
    "tar xf a.tar --one-top-level=/etc": "ask; read a.tar; write .; write ?",
    "tar cf a.tar src": "ask; write a.tar; read src",
    "tar cf - src": "allow; read src",
    "tar cf a.tar -C /etc passwd": "ask; write a.tar; read /etc/passwd",
    "tar cf a.tar src -C /etc passwd": "ask; write a.tar; read src; read /etc/passwd",
    "tar cf a.tar --remove-files .": "deny; write a.tar; read .; delete -r .",
    "tar cf a.tar -T list": "ask; read list; option.unknown -T; write a.tar",
    "tar rf a.tar b": "ask; write a.tar; read b",
    "tar c {-C,/etc,passwd}": "ask; read /etc/passwd",
    "tar --delete -f a.tar b": "ask; write a.tar; read b",
    "tar -tf a.tar -x": "ask; operand.unknown more than one mode, or none",
    tar: "ask; operand.unknown more than one mode, or none",
    "tar tf a.tar --to-command=id": "ask; option.loads-code id; read a.tar",
    "tar tf a.tar --to-com id": "ask; option.loads-code id; read a.tar",
    "tar tf a.tar --checkpoint=1 --checkpoint-action=exec=id": "ask; option.loads-code exec=id; read a.tar",
    "tar tf a.tar -I ./x": "ask; option.loads-code ./x; read a.tar",
    "tar tIf ./x a.tar": "ask; option.loads-code ./x; read a.tar",
    "tar -I./x -tf a.tar": "ask; option.loads-code ./x; read a.tar",
    "tar --use-compress-prog=./x -tf a.tar": "ask; option.loads-code ./x; read a.tar",
    "tar tf a.tar -F ./x": "ask; option.loads-code ./x; read a.tar",
    "tar tf a.tar --rsh-command=./x": "ask; option.loads-code ./x; read a.tar",
    "tar tf a.tar -g snapshot": "ask; write snapshot; read a.tar",
    "tar tf host.example:a.tar": "ask; network host.example",
    "tar tf host:a.tar --force-local": "allow; read host:a.tar",
    "tar tf $X": "ask; word.dynamic ?; read ?",
    "tar $X": "ask; word.dynamic ?",
  });
});

describe("zip and unzip", () => {
  tells({
    "unzip -l a.zip 'src/*'": "allow; read a.zip",
    "unzip -Z1 a.zip": "allow; read a.zip",
    "unzip -p a.zip b": "allow; read a.zip",
    "unzip a.zip": "ask; read a.zip; write .",
    "unzip -q a.zip -d out": "ask; write out; read a.zip",
    "unzip -o a.zip -d /": "ask; write /; read a.zip",
    "unzip -l- a.zip": "ask; option.unknown --; read a.zip",
    "unzip -lT a.zip": "ask; read a.zip; write a.zip; write .",
    "unzip -: a.zip": "ask; option.unknown -:; read a.zip; write .",
    "zipinfo -1 a.zip": "allow; read a.zip",
    "zip -r a.zip src": "ask; write a.zip; read src",
    "zip -m a.zip b": "ask; write a.zip; read b; delete -r b",
    "zip - b": "allow; read b",
    "zip a.zip b -T -TT ./x": "ask; option.loads-code ./x; write a.zip; read b",
    "zip a.zip b --unzip-command=./x": "ask; option.loads-code ./x; write a.zip; read b",
    "zip -TTid a.zip b": "ask; option.unknown -TTid; write a.zip; read b",
  });
});

describe("archivers with one-letter modes", () => {
  tells({
    "7z l a.7z": "allow; read a.7z",
    "7z l -slt a.7z": "allow; read a.7z",
    "7z l @list": "ask; operand.unknown @list; read @list",
    "7z x a.7z -o/etc": "ask; read a.7z; write /etc",
    "7z a a.7z src": "ask; write a.7z; read src",
    "7z a -sdel a.7z src": "ask; option.unknown -sdel; write a.7z; read src",
    "unrar x a.rar /": "ask; read a.rar; write .; write /",
    "ar t a.a": "allow; read a.a",
    "ar x a.a": "ask; read a.a; write .",
    "ar r a.a b.o": "ask; write a.a; read b.o",
    "ar t a.a --plugin x": "ask; option.unknown --plugin; read a.a",
    "cpio -it < a": "allow; read a",
    "cpio -id < a": "ask; read a; write .",
    "cpio -p /etc": "ask; read ?; write /etc",
    "cpio -o --rsh-command=./x": "ask; option.loads-code ./x; read ?",
  });
});

describe("programs that compress", () => {
  tells({
    "gzip a": "ask; write a",
    "gzip -c a": "allow; read a",
    "gzip -dc a": "allow; read a",
    "gzip -l a.gz": "allow; read a.gz",
    "gunzip -k a.gz": "ask; write a.gz; write a",
    "zcat a.gz": "allow; read a.gz",
    "bzip2 a": "ask; write a",
    "bzcat a.bz2": "allow; read a.bz2",
    "xz -dk a.xz": "ask; write a.xz; write a",
    "xz -l a.xz": "allow; read a.xz",
    "xz -c --files=list": "ask; read list; option.unknown --files",
    "zstd a": "ask; write a",
    "zstd -dc a.zst": "allow; read a.zst",
    "zstd -c a -o out": "ask; write out; read a",
    "zstd --rm a": "ask; option.unknown --rm; write a",
    "lz4 -d a.lz4 out": "ask; write a.lz4; write out; write a",
    "brotli -c a": "allow; read a",
    "brotli -j a": "ask; option.unknown -j; write a",
  });
});

describe("the file that decompression writes", () => {
  tells({
    "gunzip .envrc.gz": "deny; write .envrc.gz; write .envrc",
    "gzip -dS .x .envrc.x": "deny; write .envrc.x; write .envrc",
    "xz -d .envrc.xz": "deny; write .envrc.xz; write .envrc",
    "unzstd .envrc.zst": "deny; write .envrc.zst; write .envrc",
    "bunzip2 .git/config.bz2": "deny; write .git/config.bz2; write .git/config",
    "zstd -dc .envrc.zst": "allow; read .envrc.zst",
  });
});
