import { describe } from "node:test";
import { tells } from "./told.ts";

describe("the last of several modes of a compressor applies", () => {
  tells({
    "xz -t a.xz": "allow; read a.xz",
    "xz -d -t a.xz": "allow; read a.xz",
    "xz -t -d a.xz": "ask; read a.xz; write a.xz; write a",
    "zstd -c -T -o out a": "ask; write out; read a",
    "zstd -c -T0 a": "allow; read a",
    "zstd -l -d a.zst": "ask; read a.zst; write a.zst; write a",
    "xz -cd a.xz": "allow; read a.xz",
    "bzip2 -t -d -c a.bz2": "allow; read a.bz2",
  });
});

describe("commands that a program reads from a file or stdin", () => {
  tells({
    "ar -M < a.mri": "ask; read a.mri; language.unknown -M",
    "strings @list": "ask; read @list; option.loads-code @list",
    "git cat-file --batch": "ask; code settings; read ?",
    "git cat-file --batch --batch-all-objects": "allow; code settings",
  });
});

describe("options that git also recognises as values of other options", () => {
  tells({
    "git archive --prefix x/ HEAD": "allow; code settings; read HEAD",
    "git archive --prefix --output=x.tar HEAD":
      "ask; code settings; read HEAD; option.unknown --output=x.tar",
  });
});

describe("other machines", () => {
  tells({
    "cpio -t -F x:/a": "ask; read x:/a; network",
    "svn info https://x.example/a": "ask; read https:/x.example/a; network x.example; code settings",
    "svn diff ^/trunk": "ask; read ^/trunk; code settings; network",
    "hg id https://x.example/a": "ask; code settings; network",
    "hg log -r tip": "allow; code settings",
    "hg log -r --config=alias.log=x": "ask; code settings; option.unknown --config=alias.log=x",
  });
});

describe("content that is shown without being named as a file", () => {
  tells({
    "git fast-export HEAD -- .env": "ask; code settings; read HEAD; read .env",
    "git stash list -p -- .env": "ask; code settings; read .env",
    "grep -rh --include=.env '' src": "ask; read .env; read src",
    "rg -uu -g .env '' src": "ask; read src; read .env",
    "rg -g '!.env' x src": "allow; read src",
    "printenv DB_PASS": "ask; read /proc/self/environ",
    "printenv PWD": "allow",
    "gh config get git_protocol": "allow",
    "gh config get -h github.com oauth_token": "ask; operand.unknown oauth_token",
  });
});

describe("words that are commands, settings or more values", () => {
  tells({
    "mocha init docs": "ask; read init; code check; read docs; operand.unknown init",
    "ktlint installGitPreCommitHook":
      "ask; read installGitPreCommitHook; code check; operand.unknown installGitPreCommitHook",
    "jasmine A=b": "ask; read A=b; code check; operand.unknown A=b",
    "jest --reporters default ./x.js": "ask; code check; option.loads-code ./x.js",
    "jest --reporters default verbose --ci": "allow; code check",
    "dotnet format --verify-no-changes false": "ask; read false; code check; operand.unknown false",
    "dart format -o none -o write lib": "ask; read lib; code check; write lib",
    "dart format -o none lib": "allow; read lib; code check",
    "uv tree": "ask; code settings; write .",
    "uv tree --frozen": "allow; code settings",
    "phpcs --standard=PSR12 src": "allow; read src; code check",
    "phpcs --standard=/tmp/x src": "ask; read src; code check; option.loads-code /tmp/x",
    "golangci-lint run --out-format=json:x": "ask; code check; option.loads-code json:x",
  });
});

describe("a dash means stdout only where the program defines it so, and a file of that name elsewhere", () => {
  tells({
    "iconv -o - a.txt": "allow; read a.txt",
    "ctags -f - a.c": "allow; read a.c",
    "openssl rand -out - 4": "allow",
    "sort -o - a.txt": "ask; write -; read a.txt",
    "shuf -o - a.txt": "ask; write -; read a.txt",
    "tree -o - src": "ask; write -; read src",
    "git log --output=-": "ask; write -; code settings",
    "pytest --junitxml=- tests": "ask; write -; read tests; code check",
    "tee -a -": "ask; write -",
    "truncate -s0 -": "ask; write -",
    "mkfifo -": "ask; write -",
    "sponge -": "ask; write -",
    "find . -fprint -": "ask; read .; write -",
    "tee /dev/stderr": "allow; write /dev/stderr",
  });
});

describe("files written or deleted by programs that otherwise read", () => {
  tells({
    "brotli -c a": "allow; read a",
    "brotli -c -j a": "ask; option.unknown -j; read a",
    "brotli -t --rm a.br": "ask; option.unknown --rm; read a.br",
    "xxd -p a": "allow; read a",
    "xxd a -p": "ask; read a; write -p",
    "git mailsplit -o - m": "ask; write -; read m; code settings",
    "git mailsplit x": "ask; read x; code settings; write x",
    "git mailsplit a x": "ask; read a; read x; code settings; write x",
    "git lfs ls-files": "allow; code settings",
    "git lfs track": "ask; repository local",
    "git-lfs track": "ask; repository local",
  });
});

describe("options that cancel a listing, and revisions given as option values", () => {
  tells({
    "git branch --points-at HEAD x": "allow; code settings",
    "git branch --points-at HEAD --no-points-at x": "ask; option.unknown --no-points-at; code settings",
    "git tag --points-at HEAD --no-points x": "ask; option.unknown --no-points-at; code settings",
    "git config --blob HEAD:a.ini --list": "allow; code settings; read a.ini",
    "git config --blob=HEAD:.env --list": "ask; code settings; read .env",
  });
});

describe("options and words that take precedence over everything else", () => {
  tells({
    "node --test test": "allow; code check; read test",
    "node --run test": "allow; code check",
    "node --test --run x": "ask; code project",
    "node --check --run x": "ask; code project",
    "node --test --test-reporter-destination=-": "ask; write -; code check",
    "swiftlint autocorrect": "ask; code project",
    "swiftlint docs": "ask; code project",
  });
});

describe("readers and checks similar to the ones above", () => {
  tells({
    "just --list": "allow; code settings",
    "just --evaluate": "ask; code project",
    "just --list x": "ask; code project",
    "task test": "allow; code check",
    "task -d src lint": "allow; read src; code check",
    "task test -- x": "ask; code project",
    "task test A=b": "ask; code project",
    "task -t /tmp/x.yml test": "ask; code project; code check",
    "task -g test": "ask; option.unknown -g; code check",
    "make test VERBOSE=1": "allow; code check",
    "make test CC=./x": "ask; code project",
    "make VERBOSE=1": "ask; code project",
    "black -": "allow; code check",
    "black - a.py": "ask; read a.py; code check; write -; write a.py",
    "isort -": "allow; code check",
    "ruff format -": "allow; code check",
    "terraform fmt -": "allow; code settings",
    "pyenv versions": "allow; code settings",
    "pyenv exec x": "ask; install",
    "asdf list": "allow; code settings",
    "asdf list all nodejs": "ask; code settings; operand.unknown all",
    "nvm current": "allow; code settings",
    "nvm use 20": "ask; install",
  });
});
