import { describe } from "node:test";
import { tells } from "./told.ts";

describe("jq", () => {
  tells({
    "jq . a.json": "allow; read a.json",
    "jq -r '.[] | [.a, .b] | @csv' a.json b.json": "allow; read a.json; read b.json",
    "jq .name -rc a.json": "allow; read a.json",
    "jq '.env, {env: .x}, .\"env\"' a.json": "allow; read a.json",
    'jq \'"env \\(.a | "\\(.b)")"\' a.json': "allow; read a.json",
    "jq --arg n react '.dependencies[$n]' a.json": "allow; read a.json",
    "jq --slurpfile a .env --rawfile b c -n '$a'": "ask; read .env; read c",
    "jq '.[0]' a --args b c": "allow; read a",
    "jq -n 'env'": "ask; read /proc/self/environ",
    "jq -n '$ENV.HOME'": "ask; read /proc/self/environ",
    "jq '\"\\(env)\"' a": "ask; read /proc/self/environ; read a",
    "jq '.[env:]' a": "ask; read /proc/self/environ; read a",
    "jq '. # x \\\n| env' a": "ask; language.unknown . # x \\\n| env; read a",
    "jq 'import \"a\" as $b; $b' a": 'ask; language.unknown import "a" as $b; $b; read a',
    "jq 'include \"a\"; b' a": 'ask; language.unknown include "a"; b; read a',
    "jq '.a`' a": "ask; language.unknown .a`; read a",
    "jq -f a.jq /etc/shadow": "ask; option.loads-code -f; read a.jq; read /etc/shadow",
    "jq -nf a.jq": "ask; option.loads-code -nf; read a.jq",
    "jq -L lib . a": "ask; option.loads-code lib; read a",
    "jq -L/etc . a": "ask; option.loads-code -L/etc; read a",
    "jq --foo . a": "ask; option.unknown --foo; read a",
    'jq "$X" a': "ask; word.dynamic ?; read a",
    "jq --arg a $X . a": "ask; word.dynamic ?; read a",
    'jq --arg a "$X" . a': "allow; read a",
    "jq . $X": "ask; word.dynamic ?; read ?",
    "jq . -$X": "ask; word.dynamic -?",
    "jq . *.json": "ask; word.leading-glob *.json; read *.json",
    "jq . src/*.json": "allow; read src/*.json",
    "jq . .env": "ask; read .env",
    "jq -h": "allow",
  });
});

describe("yq", () => {
  tells({
    "yq .a.b a.yml": "allow; read .a.b; read a.yml",
    "yq '.items[] | select(.n > 1)' a.yml": "allow; read a.yml",
    "yq eval -P '.a' a.yml": "allow; read .a; read a.yml",
    "yq -o=json a.yml": "allow; read a.yml",
    "yq .env": "ask; read .env",
    "yq -i '.a = 1' a.yml": "ask; write a.yml",
    "yq -i '.a = 1' .git/config": "deny; write .git/config",
    "yq 'load(\"/etc/shadow\")' a.yml": 'ask; read a.yml; language.unknown load("/etc/shadow")',
    "yq '.a = strload(\"x\")' a.yml": 'ask; read a.yml; language.unknown .a = strload("x")',
    "yq -n 'env(HOME)'": "ask; read /proc/self/environ",
    "yq -n 'strenv(HOME)'": "ask; read /proc/self/environ",
    "yq '.a | envsubst' a.yml": "ask; read a.yml; read /proc/self/environ",
    "yq -n 'system(\"id\")'": 'ask; language.unknown system("id")',
    "yq -s .a a.yml": "ask; option.unknown -s; read .a; read a.yml",
    "yq -f extract a.yml": "ask; option.unknown -f; read extract; read a.yml",
    'yq "$X" a.yml': "ask; word.dynamic ?; read ?; read a.yml",
  });
});
