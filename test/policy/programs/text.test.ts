import { describe } from "node:test";
import { tells } from "./told.ts";

describe("programs that show text", () => {
  tells({
    "cat -n a b": "allow; read a; read b",
    cat: "allow",
    "cat *.ts": "allow; read *.ts",
    'cat "$F"': "ask; read ?",
    "cat --foo a": "ask; option.unknown --foo; read a",
    "cat --show-a a": "allow; read a",
    "cat .env": "ask; read .env",
    "bat -p --paging=never a": "allow; read a",
    "bat --paging=always a": "ask; read a; option.unknown always",
    "bat --pager=id a": "ask; option.loads-code id; read a",
    "bat cache --build": "ask; option.unknown --build; read cache; operand.unknown cache",
    "head -20 a": "allow; read a",
    "head -n $N a": "allow; read a",
    "head -n$N a": "ask; word.dynamic -n?; read a",
    "tail -n +2 a": "allow; read a",
    "wc -l *.ts": "allow; read *.ts",
    "wc --files0-from=x": "allow; read x",
    "nl -ba a": "allow; read a",
    "column -t -s, a": "allow; read a",
    "column --output x": "ask; option.unknown --output; read x",
    "pr -n a": "allow; read a",
    "look a /etc/shadow": "ask; read /etc/shadow",
    "zgrep -i x a.gz": "allow; read a.gz",
    "echo --- $X -rf": "allow",
  });
});

describe("programs that sort, pick and join", () => {
  tells({
    "sort -k2,2 -t, a": "allow; read a",
    "sort -o out a": "ask; write out; read a",
    "sort -uo out a": "ask; write out; read a",
    "sort --outp out a": "ask; write out; read a",
    "sort --compress-program=./x a": "ask; option.loads-code ./x; read a",
    "sort -T /etc a": "ask; write /etc; read a",
    "sort -k $K a": "ask; word.dynamic ?; read a",
    'sort -k "$K" a': "allow; read a",
    "sort *.txt": "ask; word.leading-glob *.txt; read *.txt",
    "sort src/*.txt": "allow; read src/*.txt",
    "uniq -c a": "allow; read a",
    "uniq a out": "ask; read a; write out",
    "cut -d, -f2 a": "allow; read a",
    "paste -sd, a": "allow; read a",
    "join -a1 a b": "allow; read a; read b",
    "comm -12 a b": "allow; read a; read b",
    "shuf -n 5 a": "allow; read a",
    "shuf -o out a": "ask; write out; read a",
    "iconv -f latin1 -t utf-8 a": "allow; read a",
    "iconv -o out a": "ask; write out; read a",
    "tr a-z A-Z": "allow",
    "seq 10 -1 1": "allow",
  });
});

describe("programs that compare", () => {
  tells({
    "diff -ru a b": "allow; read a; read b",
    "diff --label x a b": "allow; read a; read b",
    "diff -X /etc/shadow a b": "ask; read /etc/shadow; read a; read b",
    "cmp -n 100 a b": "allow; read a; read b",
    "diff3 --diff-program=./x a b c": "ask; option.loads-code ./x; read a; read b; read c",
    "sdiff -s a b": "allow; read a; read b",
    "sdiff -o out a b": "ask; write out; read a; read b",
  });
});

describe("programs that show bytes", () => {
  tells({
    "sha256sum -c SUMS": "allow; read SUMS",
    "cksum -a sha256 a": "allow; read a",
    "base64 -d a": "allow; read a",
    "base64 -o out a": "ask; option.unknown -o; read out; operand.unknown a",
    "xxd -l 64 a": "allow; read a",
    "xxd a out": "ask; read a; write out",
    "xxd -ps a out": "ask; read a; write out",
    "xxd -r -p a": "allow; read a",
    "hexdump -C a": "allow; read a",
    "hexdump -f format a": "ask; read format; option.unknown -f; read a",
    "od -An -tx1 a": "allow; read a",
    "strings -n 8 a": "allow; read a",
  });
});

describe("printf and date", () => {
  tells({
    "printf '%s\\n' $X": "allow",
    'printf "$X"': "allow",
    "printf $X": "ask; word.dynamic ?",
    'printf "$X" y': "ask; word.dynamic ?",
    "printf -v x y": "ask; shell.expansion -v",
    "printf -- '-x\\n'": "allow",
    "printf '100%%\\n'": "allow",
    "printf %n PATH": "ask; shell.expansion %n",
    "date +%F": "allow",
    'date "+$F"': "allow",
    'date "$F"': "ask; word.dynamic ?",
    "date -s tomorrow": "deny; system",
    "date 01010101": "deny; system",
    "date -r a": "allow; read a",
    yes: "ask; command.unfollowed yes",
  });
});

describe("test and [", () => {
  tells({
    "[ -f a ]": "allow; read a",
    "[ -f a": "ask; operand.unknown a",
    "[ ! -d dist ]": "allow; read dist",
    '[ -z "$CI" ]': "allow",
    '[ -n "$A" -a -d "$B" ]': "ask; read ?",
    '[ "$A" = b ]': "allow",
    "[ $A = b ]": "ask; word.dynamic ?",
    '[ "$A" "$B" ]': "ask; word.dynamic ?",
    "[ 3 -gt 2 ]": "allow",
    '[ "$A" -gt 2 ]': "ask; word.dynamic ?; shell.expansion ?",
    "[ 'a[$(id)]' -eq 0 ]": "ask; shell.expansion a[$(id)]",
    "[ -v CI ]": "allow",
    "[ -v 'a[$(id)]' ]": "ask; shell.expansion a[$(id)]",
    "[ -f src/*.ts ]": "allow; read src/*.ts",
    "[ -f *.ts ]": "ask; read *.ts; word.leading-glob *.ts",
    "test a -nt b": "allow; read a; read b",
    "test -f ~/.ssh/id_rsa": "ask; read /home/dev/.ssh/id_rsa",
    test: "allow",
  });
});
