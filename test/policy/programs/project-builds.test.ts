import { describe } from "node:test";
import { tells } from "./told.ts";

describe("builders", () => {
  tells({
    "make --version": "allow; code settings",
    "make test": "allow; code check",
    "make -n test": "allow; code check",
    "make test release": "ask; code project",
    "make CC=clang": "ask; code project",
    'make test CC="sh -c id"': "ask; code project; operand.unknown CC=sh -c id",
    "make SHELL=./x": "ask; code project; operand.unknown SHELL=./x",
    "make -C ../evil": "ask; read /home/dev/evil; code project",
    "make -f /tmp/x": "ask; code project",
    "just test": "allow; code check",
    "ctest --test-dir build --output-on-failure": "allow; read build; code check",
    "ctest -S x.cmake": "ask; option.loads-code x.cmake; code check",
    "cmake --build build": "ask; code project",
    "cmake -E rm -rf x": "ask; code project; language.unknown -E; delete -f -r x",
    "meson test -C build": "allow; read build; code check",
    "meson test --wrapper ./x": "ask; option.loads-code ./x; code check",
    "ninja -v": "ask; code project",
    "ninja -C build -j 4 test": "allow; read build; code check",
    "ninja test install": "ask; code project",
    "ninja -C ../evil test": "ask; read /home/dev/evil; code check",
    "ninja -f /tmp/x test": "ask; code project; code check",
    "ninja -t clean": "ask; option.unknown -t; code project",
  });
});

describe("compilers", () => {
  tells({
    "gcc --version": "allow",
    "gcc -print-search-dirs": "allow",
    "gcc -fsyntax-only src/main.c": "allow; code check; read src/main.c",
    "gcc -fsyntax-only -fplugin=./x.so src/main.c":
      "ask; code check; option.unknown -fplugin=./x.so; read src/main.c",
    "gcc -fsyntax-only -wrapper sh src/main.c":
      "ask; code check; option.unknown -wrapper; read sh; read src/main.c",
    "gcc -fsyntax-only @args": "ask; code check; option.loads-code @args",
    "gcc src/main.c -o /etc/x": "ask; write .; code project; read src/main.c; code check; write /etc/x",
    "clang-format -i src/main.c": "ask; write src/main.c",
    "clang-format src/main.c": "allow; read src/main.c",
    "ld x": "ask; command.unfollowed ld; code project",
    "pkg-config --libs openssl": "allow; code settings",
  });
});

describe("system package managers", () => {
  tells({
    "apt list --installed": "allow",
    "apt-get install x": "ask; install",
    "dpkg -l": "allow",
    "dpkg -i x.deb": "ask; install",
    "rpm -qa": "allow",
    "rpm -i x.rpm": "ask; option.unknown -i",
    "brew upgrade": "ask; install",
    "nix-shell -p x": "ask; install; code project",
    "rpm -qp https://evil.example/x.rpm": "ask; network; read https:/evil.example/x.rpm",
    "dpkg -c /home/x.deb": "ask; read /home/x.deb",
    "apt-cache policy nodejs": "allow",
    "apt show bash/stable": "allow",
    "apt show ./x.deb": "allow; read x.deb",
    "apt-cache show /home/x.deb": "ask; read /home/x.deb",
    'apt show "$F"': "ask; word.dynamic ?; read ?",
    "dpkg --field /home/x.deb": "ask; read /home/x.deb",
    "dpkg-query --control-list bash": "allow",
  });
});
