import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import test from "node:test";
import { type GitWords, readGitWords } from "../../../src/boxes/protect/git-words.ts";
import { shellText } from "../../../src/policy/shell/quote.ts";
import { fc, many } from "../../fixtures/property.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { git, noGit, repository } from "./repository.ts";

// own process: it starts many programs, and each start costs by the memory of the process

/** What the reader says; undefined for what it refuses. */
function read(verb: string, words: readonly string[]): GitWords | undefined {
  try {
    return readGitWords(verb, words);
  } catch {
    return undefined;
  }
}

/** All options of `git commit` and `git add`, as `git rev-parse --parseopt` takes them. */
const SPECS: Readonly<Record<string, string>> = {
  commit: `git commit
--
q,quiet x
v,verbose x
F,file= x
author= x
date= x
m,message= x
c,reedit-message= x
C,reuse-message= x
fixup= x
squash= x
reset-author x
trailer= x
s,signoff x
t,template= x
e,edit x
cleanup= x
status x
S,gpg-sign? x
a,all x
i,include x
interactive x
p,patch x
o,only x
n,no-verify x
dry-run x
short x
branch x
ahead-behind x
porcelain x
long x
z,null x
amend x
no-post-rewrite x
u,untracked-files? x
pathspec-from-file= x
pathspec-file-nul x
allow-empty x
allow-empty-message x
`,
  add: `git add
--
n,dry-run x
v,verbose x
i,interactive x
p,patch x
e,edit x
f,force x
u,update x
renormalize x
N,intent-to-add x
A,all x
ignore-removal x
refresh x
ignore-errors x
ignore-missing x
sparse x
chmod= x
pathspec-from-file= x
pathspec-file-nul x
`,
};

/** git's own reader of options, over the same options: what it makes of each list of words, null where it refuses. */
async function parsedByGit(
  verb: string,
  lists: readonly (readonly string[])[],
): Promise<readonly (readonly string[] | null)[]> {
  await using place = await scratch({ spec: SPECS[verb] ?? "" });
  const script = `words() {
  if shown=$(git rev-parse --parseopt --stuck-long -- "$@" <"$SPEC" 2>/dev/null); then
    eval "$shown"; printf '%s\\0' "$@" "$END"
  else printf '%s\\0' "$REFUSED" "$END"; fi
}
${lists.map((words) => `words ${shellText(words)}\n`).join("")}`;
  const env = { PATH: process.env["PATH"], SPEC: place.at("spec"), END: "\x01end", REFUSED: "\x01refused" };
  const { stdout } = spawnSync("sh", { input: script, env, encoding: "utf8" });
  return stdout
    .split(`${env.END}\0`)
    .slice(0, -1)
    .map((part) => (part === `${env.REFUSED}\0` ? null : part.split("\0").slice(0, -1)));
}

const LETTERS = {
  commit: { a: "all", q: "quiet", v: "verbose", n: "no-verify", s: "signoff", m: "message" },
  add: { A: "all", u: "update", f: "force", v: "verbose", n: "dry-run", N: "intent-to-add" },
} as const;

/** As git prints it with --stuck-long: each option with its value, then `--` and the paths. */
function asGit(verb: "add" | "commit", { options, paths }: GitWords): readonly string[] {
  const longs = new Map<string, string>(Object.entries(LETTERS[verb]));
  const printed = options.map(([name, value]) => {
    const long = `--${longs.get(name) ?? name}`;
    return value === null ? long : `${long}=${value}`;
  });
  return [...printed, "--", ...paths];
}

const PIECES = {
  commit: `-m -am -mmsg -qm -qm-- -m-- -- -F -Fx --file --fil=x --mess --message --message= --message=x --message=-- --messag=y
    --amend --amen -a -aq -v -n -s --author --author=A --date -S -Skey -u -uno --no-edit --edit -e -C -c -t --template=x
    --fixup --fixup=HEAD --squash --trailer --trailer=a:b --pathspec-from-file --pathspec-from-file=x --cleanup
    --cleanup=verbatim --end-of-options --no-verify -p --interactive --dry-run --only -o - x file -z --message=a=b -m= -ma=b
    --no-message --no-all --no-author -qav -qa-m -a=x --all=x --signoff`,
  add: "-A -u -f -N -n -v -fA -Av -p -i -e --edit --all --al --chmod --chmod=+x +x --chm=+x --force --pathspec-from-file=x -- - x --no-all --renormalize --sparse -Aperm --refresh --ignore-errors --dry-run --upd --end-of-options",
};

for (const verb of ["commit", "add"] as const)
  test(`what is read of git ${verb} is what git reads`, { skip: noGit }, async () => {
    const word = fc.constantFrom(...PIECES[verb].trim().split(/\s+/), "");
    const lists = fc.sample(fc.array(word, { minLength: 1, maxLength: 5 }), 400);
    const compared = lists.flatMap((words) => {
      const ours = read(verb, words);
      return ours === undefined ? [] : [{ words, ours: asGit(verb, ours) }];
    });
    assert.ok(compared.length > 40, `only ${compared.length} were compared`);
    const theirs = await parsedByGit(
      verb,
      compared.map(({ words }) => words),
    );
    assert.deepEqual(
      compared.map(({ words }, at) => ({ words, ours: theirs[at] })),
      compared,
    );
  });

test(
  "no commit that is let through reads a file, or has another message than was read",
  { skip: noGit },
  async () => {
    await using place = await scratch({ "trap/x": "TRAP\n", x: "TRAP\n" });
    const work = repository(place.at("w"));
    await place.write("w/x", "TRAP\n");
    await place.write("w/file", "TRAP\n");
    git(work, "add", "-A");
    git(work, "commit", "-qm", "TRAP files are in");
    const word = fc.constantFrom(
      ..."-m -am -mmsg -qm -- -F -Fx --fil=x --mess --message= --message=y -a -q -t x - -C HEAD -e --template=x --no-verify".split(
        " ",
      ),
    );
    let made = 0;
    fc.assert(
      fc.property(fc.array(word, { minLength: 2, maxLength: 5 }), (words) => {
        const ours = read("commit", words);
        const messages = ours?.options.flatMap(([name, value]) =>
          (name === "m" || name === "message") && value !== null ? [value] : [],
        );
        if (ours === undefined || messages === undefined || messages.length === 0) return;
        const { status } = spawnSync(
          "git",
          [
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "-c",
            "core.editor=false",
            "-c",
            "commit.cleanup=verbatim",
            "commit",
            "--allow-empty",
            "--allow-empty-message",
            ...words,
          ],
          { cwd: work, env: { PATH: process.env["PATH"], HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1" } },
        );
        if (status !== 0) return;
        made += 1;
        // How git joins empty messages is not the matter here.
        const said = git(work, "log", "-1", "--format=%B").split(/\n+/);
        assert.deepEqual(
          said.filter((part) => part !== ""),
          messages.filter((text) => text !== ""),
          JSON.stringify(words),
        );
      }),
      { numRuns: many(150) },
    );
    assert.ok(made > 10, `only ${made} commits were made`);
  },
);

for (const [words, why] of [
  [["-m", "--", "-F", "x"], /-F is not among the options/],
  [["--mess", "x"], /--mess is not among .*write it out: --message/],
  [["--fil=x"], /--fil=x is not among/],
  [["-S"], /-S is not among/],
  [["-uall"], /-uall is not among/],
  [["-m"], /-m has no value/],
  [["--amend=x"], /amend takes no value/],
  [["-qaF", "x"], /-qaF is not among/],
  [["file", "-e"], /-e is not among/],
] as const)
  test(`git commit ${words.join(" ")} is refused, with its reason`, () => {
    assert.throws(() => readGitWords("commit", words), { message: why });
  });

test("a value is what git takes for one, and nothing behind -- is an option", () => {
  assert.deepEqual(readGitWords("commit", ["-am", "--", "x", "--", "-F"]), {
    options: [
      ["a", null],
      ["m", "--"],
    ],
    paths: ["x", "-F"],
  });
  assert.throws(() => readGitWords("add", ["--chmod=u+s", "x"]), { message: /takes no such value/ });
});
