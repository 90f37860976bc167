import { describe } from "node:test";
import { tells } from "./told.ts";

describe("programs that list files", () => {
  tells({
    "ls -la src": "allow; read src",
    ls: "allow; read .",
    "ls ~/.ssh": "ask; read /home/dev/.ssh",
    "ls --colour": "ask; option.unknown --colour; read .",
    "ls $X": "ask; read ?",
    "tree -aL 2": "allow; read .",
    "tree -L2 src": "allow; read src",
    "tree -o out": "ask; write out; read .",
    "tree -Lo 2 out": "ask; read 2; read out; option.unknown -Lo",
    "tree -R": "ask; option.unknown -R; read .",
    "tree $X": "ask; word.dynamic ?; read ?",
    "du -sh *": "ask; word.bare-glob *; read *",
    "du -X /etc/shadow": "ask; read /etc/shadow; read .",
    "df -h": "allow",
    "stat -c %s a": "allow; read a",
    "file -b a": "allow; read a",
    "file -C": "ask; option.unknown -C",
    "file -m magic a": "ask; read magic; option.unknown -m; read a",
    "basename $X .ts": "allow",
    "realpath --relative-to=. src": "allow; read src",
    "realpath ~/.ssh/id_rsa": "ask; read /home/dev/.ssh/id_rsa",
    "readlink -f a": "allow; read a",
    lsblk: "allow",
    lsof: "allow",
    "lsof -i :3000": "ask; read :3000; network",
  });
});

describe("programs that copy, move and link", () => {
  tells({
    "cp a b": "ask; read a; write b",
    "cp -r a b src/": "ask; read a; read b; write src; write src/a; write src/b",
    "cp -t src a": "ask; read a; write src; write src/a",
    "cp --target=/etc a": "ask; read a; write /etc; write /etc/a",
    "cp -r x/.git .": "deny; read x/.git; write .; write .git",
    "cp .env /tmp": "ask; read .env; write /tmp; write /tmp/.env",
    "cp -s /etc/passwd x": "deny; read /etc/passwd; write /etc/passwd; write x",
    "cp $X b": "ask; read ?; write b; write ?",
    "cp --foo a b": "ask; option.unknown --foo; read a; write b",
    "mv a b": "ask; read a; delete a; write b",
    "mv -f a b": "ask; read a; delete -f a; write b",
    "mv .git x": "deny; read .git; delete .git; write x; write x/.git",
    "mv * /tmp": "ask; word.bare-glob *; read *; delete *; write /tmp; write /tmp/*",
    "mv x /dev/sda": "deny; read x; delete x; write /dev/sda",
    "ln -s /etc x": "ask; read /etc; write /etc; write x",
    "ln -s .git g": "deny; read .git; write .git; read g/.git; write g/.git; write g",
    "ln -s ../.git sub/x":
      "deny; read .git; write .git; read sub/.git; write sub/.git; write sub/x; write sub/x/.git",
    "ln -sr a b": "ask; read a; write a; write b",
    "ln a b": "ask; read a; write a; write b",
    "link a b": "ask; read a; write a; write b",
    "install -m755 a /usr/bin/x": "ask; read a; write /usr/bin/x",
    "install -d x y": "ask; write x; write y",
    "install -s --strip-program=./x a b": "ask; option.loads-code ./x; read a; write b",
  });
});

describe("programs that remove or create files", () => {
  tells({
    "rm a": "ask; delete a",
    "rm -rf coverage": "ask; delete -f -r coverage",
    "rm -rf /": "deny; delete -f -r /",
    "rm --recurs --forc .": "deny; delete -f -r .",
    "rm -r *": "deny; word.bare-glob *; delete -r *",
    'rm -rf "$X"': "ask; delete -f -r ?",
    "rm $X": "ask; delete ?",
    "rmdir -p a/b": "ask; delete a/b",
    "unlink a": "ask; delete a",
    "shred a": "ask; write a",
    "shred -u a": "ask; delete a",
    "mkdir -p a": "ask; write a",
    "touch -r b a": "ask; read b; write a",
    "truncate -s 0 a": "ask; write a",
    "fallocate -l 1G a": "ask; write a",
    mktemp: "ask; write /tmp/tmp.*",
    "mktemp ./x.XXX": "ask; write x.XXX",
    "mktemp -p /etc": "ask; write /etc; write /tmp/tmp.*",
    "mkfifo a": "ask; write a",
    "mknod a p": "ask; write a",
    "mknod a b 8 0": "deny; write a; system",
    "rename s/a/b/ a": "ask; language.unknown s/a/b/; write a",
    sync: "allow",
  });
});

describe("programs that change permissions", () => {
  tells({
    "chmod 644 a": "ask; permissions a",
    "chmod -x a": "ask; permissions a",
    "chmod --reference=b a": "ask; permissions a",
    "chmod -R u+w src": "ask; permissions -r src",
    "chmod -R 777 .": "deny; permissions -r .",
    "chmod --recurs -x .": "deny; permissions -r .",
    "chown me a": "ask; permissions a",
    "chown --reference=b a": "ask; permissions a",
    "chown -R me .": "deny; permissions -r .",
    "chgrp -R x /": "deny; permissions -r /",
    "chattr -R -i /": "deny; permissions -r /",
    "chattr +i a": "ask; permissions a",
    "setfacl -m u:x:rwx a": "ask; permissions a",
    "setfacl --restore=x": "ask; read x; option.unknown --restore",
    "setcap cap_net_raw+ep a": "deny; privilege",
  });
});

describe("programs that write copies of what they read", () => {
  tells({
    "ls | tee a": "ask; read .; write a",
    "ls | tee /dev/stderr": "allow; read .; write /dev/stderr",
    "tee -a .git/config": "deny; write .git/config",
    "split -l 10 a": "ask; read a; write x*",
    "split a part/": "ask; read a; write part/*",
    "split --filter='rm -rf ~' a": "deny; delete -f -r /home/dev; read a; write x*",
    "csplit -f .git/x a 10": "deny; read a; write .git/x*",
    "dd if=a": "allow; read a",
    "dd if=a of=b bs=1M": "ask; read a; write b",
    "dd if=a of=/dev/sda": "deny; read a; write /dev/sda",
    'dd if=a "of=$X"': "ask; read a; write ?",
    "dd bs=$X": "ask; word.dynamic bs=?",
    "dd foo=a": "ask; option.unknown foo=a",
    "dos2unix a": "ask; write a",
    "dos2unix -i a": "allow; read a",
  });
});
