import assert from "node:assert/strict";
import test from "node:test";
import { parse } from "smol-toml";
import { type Proposal, proposalText, proposePolicy } from "../../src/policy/propose-policy.ts";
import { failedExamples } from "../../src/policy/rules-from-commands.ts";
import { readRules, type RuleForm, type UserRules } from "../../src/policy/rule.ts";
import { AROUND, policy, rulesFrom, verdict } from "./judged.ts";
import { proposed, recorded } from "./recorded.ts";

/** The rules as they are read from a file; every example of theirs passes. */
function compiled({ rules }: Proposal): UserRules {
  const { examples, problems } = readRules(rules, "user");
  assert.deepEqual([problems, failedExamples(examples, policy, AROUND.home)], [[], []]);
  return examples.map(({ rule }) => rule);
}

const words = ({ rules }: Proposal): unknown =>
  rules.map(({ prefix, exact, effect, path, arg }) =>
    Object.fromEntries(
      Object.entries({ prefix, exact, effect, path, arg }).filter(([, value]) => value !== undefined),
    ),
  );

test("the proposal allows what ran, however it was written, and nothing similar", () => {
  const rows: readonly (readonly [ran: string, beside: string])[] = [
    ["npm run build", "npm run deploy"],
    ["npm run build -- --watch", "npm run build"],
    ["cd web && npm run build", "cd web && npm run deploy"],
    ["(cd web; npm run pack)", "(cd web; npm run deploy)"],
    ["npm run build 2>&1 | tail -20", "npm run deploy 2>&1 | tail -20"],
    ["bash -c 'npm run pack && make all'", "bash -c 'make install'"],
    ["NODE_ENV=test npm run e2e", "NODE_ENV=test npm run deploy"],
    ["timeout 60 make all", "timeout 60 make install"],
    ["echo $(node tools/version.js)", "echo $(node tools/other.js)"],
    ["for f in a b; do node $f.js; done", "node c.js"],
    ["node server.js & sleep 1; curl -s http://localhost:3000/", "curl -s http://localhost:3001/"],
    ["echo x > 'my notes/a b.txt'", "echo x > 'my notes/c.txt'"],
    ["cat > src/new.ts <<'EOF'\nexport {};\nEOF", "cat > src/other.ts <<'EOF'\nEOF"],
    ["cp 'a b.txt' \"it's.txt\"", "cp 'a b.txt' c.txt"],
    ["python3 -c 'print(\"a b\")'", "python3 -c 'print(1)'"],
    ["frob --deep 'x y'", "frob --deep x"],
    ["git add -A && git commit -m 'mend it'", "git commit -m other"],
    ["curl -s https://api.example.org/v1", "curl -s https://api.example.org/v2"],
    ["rm -rf build/", "rm -rf src/"],
    ["find . -name '*.log' -delete", "find . -name '*.ts' -delete"],
    ["cat ~/notes/a.md", "cat ~/notes/b.md"],
    ["chmod +x run.sh && ./run.sh fast", "./run.sh slow"],
  ];
  for (const [ran, beside] of rows) {
    const proposal = proposed({ commands: [ran] });
    const rules = compiled(proposal);
    const verdicts = [verdict(ran, []), verdict(ran, rules), verdict(beside, rules)];
    assert.deepEqual([verdicts, proposal.left], [["ask", "allow", "ask"], []], ran);
  }
  const all = proposed({ commands: rows.map(([ran]) => ran) });
  const rules = compiled(all);
  for (const [ran] of rows) assert.equal(verdict(ran, rules), "allow", ran);
});

test("each command gets its own rule, and a command that is already allowed gets none", () => {
  const commands = ["npm test", "npm run build", "npm run pack", "npm run lint", "ls -l", "npm run build"];
  assert.deepEqual(words(proposed({ commands })), [
    { prefix: ["npm", "run", "build"], exact: true },
    { prefix: ["npm", "run", "pack"], exact: true },
  ]);
});

test("values specific to one run are generalised only where two of a kind were seen", () => {
  const hex = "[0-9a-f]".repeat(8);
  const date = `${"[0-9]".repeat(4)}-${"[0-9]".repeat(2)}-${"[0-9]".repeat(2)}`;
  const rows: readonly (readonly [ran: readonly string[], rules: unknown])[] = [
    [["echo 1 > out/r-1a2b3c4d.json"], [{ effect: "write", path: "out/r-1a2b3c4d.json" }]],
    [
      ["echo 1 > out/r-1a2b3c4d.json", "echo 2 > out/r-9f8e7d6c.json"],
      [{ effect: "write", path: `out/r-${hex}.json` }],
    ],
    [
      ["rm -rf build-1a2b3c4d", "rm -rf build-9f8e7d6c"],
      [{ prefix: ["rm", "-rf"], effect: ["delete"], path: [`build-${hex}`] }],
    ],
    [
      ["mkdir -p /tmp/w.AbCdEf12/x", "mkdir -p /tmp/w.Zz00yy11/x"],
      [{ prefix: ["mkdir", "-p"], effect: ["write"], path: [`/tmp/w.${"[0-9A-Za-z]".repeat(8)}/x`] }],
    ],
    [
      ["cat ~/log/2026-11-23.txt", "cat ~/log/2026-11-24.txt"],
      [{ prefix: ["cat"], effect: ["read"], path: [`~/log/${date}.txt`] }],
    ],
    [
      ["node gen.js --out o/p-1a2b3c4d.html", "node gen.js --out o/p-9f8e7d6c.html"],
      [{ prefix: ["node", "gen.js", "--out"], arg: "o/p-*.html" }],
    ],
    // Not known what it does with them, not of one kind, or nothing that a run makes.
    [
      ["frob p-1a2b3c4d", "frob p-9f8e7d6c"],
      [
        { prefix: ["frob", "p-1a2b3c4d"], exact: true },
        { prefix: ["frob", "p-9f8e7d6c"], exact: true },
      ],
    ],
    [
      ["rm p-1a2b3c4d", "rm p-2026-11-23"],
      [
        { prefix: ["rm", "p-1a2b3c4d"], exact: true },
        { prefix: ["rm", "p-2026-11-23"], exact: true },
      ],
    ],
    [
      ["rm part-1", "rm part-2"],
      [
        { prefix: ["rm", "part-1"], exact: true },
        { prefix: ["rm", "part-2"], exact: true },
      ],
    ],
    [
      ["python3 -c 'f(\"1a2b3c4d\")'", "python3 -c 'f(\"9f8e7d6c\")'"],
      [
        { prefix: ["python3", "-c", 'f("1a2b3c4d")'], exact: true },
        { prefix: ["python3", "-c", 'f("9f8e7d6c")'], exact: true },
      ],
    ],
  ];
  for (const [commands, rules] of rows) {
    const proposal = proposed({ commands });
    assert.deepEqual(words(proposal), rules, commands[0]);
    for (const each of commands) assert.equal(verdict(each, compiled(proposal)), "allow", each);
  }
  const rules = compiled(proposed({ commands: ["rm -rf build-1a2b3c4d", "rm -rf build-9f8e7d6c"] }));
  const others = [
    "rm -rf build-0a0b0c0d",
    "rm -rf build-0a0b0c0d src",
    "rm -rf build-main",
    "rm -rf build-*",
  ];
  assert.deepEqual(
    others.map((each) => verdict(each, rules)),
    ["allow", "ask", "ask", "ask"],
  );
});

test("no rule is proposed for a command that is denied, was refused, reads or contains a secret, or cannot be covered", () => {
  const token = `ghp_${"a1B2".repeat(10)}`;
  const commands = [
    "cat .env",
    `curl -H 'Authorization: Bearer ${token}' https://api.example.org/`,
    "FOO=1 npm run build",
    'eval "$x"',
    "cat x | sh",
    "! rm -rf ~",
    "? git push",
  ];
  const proposal = proposed({ commands, files: [["reads", `${AROUND.workspace}/.env`]] });
  assert.deepEqual(proposal.rules, []);
  assert.deepEqual(
    proposal.left.map(({ what }) => what),
    [
      "cat .env",
      "curl -H 'Authorization: Bearer [secret: github token]' https://api.example.org/",
      "FOO=1 npm run build",
      'eval "$x"',
      "cat x | sh",
      ".env",
    ],
  );
  assert.match(
    proposal.left[0]?.reason ?? "",
    /likely to hold a secret.*harness policy allow -- 'cat \.env'/,
  );
  assert.deepEqual(
    proposal.refused.map(({ what }) => what),
    ["rm -rf ~", "git push"],
  );
  assert.ok(!JSON.stringify(proposal).includes(token));
  assert.ok(!proposalText(proposal, ["s"]).includes(token));
});

test("the user's rules that tighten are kept; those that allow are proposed only as far as they were used", () => {
  const rules = rulesFrom([
    { prefix: ["npm", "run"], decision: "allow" },
    { id: "mine", prefix: ["make"], decision: "ask" },
  ]);
  const proposal = proposed({ commands: ["npm run build", "make all"] }, rules);
  assert.deepEqual(words(proposal), [{ prefix: ["npm", "run", "build"], exact: true }]);
  assert.deepEqual(proposal.left, [{ what: "make all", reason: "because (user.mine)" }]);
});

test("full access is recorded as what workspace-write would need; a secret is left out, and file tools need no rule", () => {
  const inside = `${AROUND.workspace}/src/a.ts`;
  const files = [
    ["writes", inside],
    ["writes", "/etc/motd"],
  ] as const;
  const proposal = proposed({ mode: "danger-full-access", commands: ["npm run build", "cat .env"], files });
  assert.deepEqual(words(proposal), [{ prefix: ["npm", "run", "build"], exact: true }]);
  assert.deepEqual(
    proposal.left.map(({ what }) => what),
    ["cat .env", "/etc/motd"],
  );
  assert.deepEqual(proposal.needed.writes, { "src/a.ts": 1, "/etc/motd": 1 });
});

test("commands in a folder of the workspace are judged and shown there", () => {
  const folder = `${AROUND.workspace}/my web`;
  const proposal = proposed({ commands: ["./run.sh", "echo x > out"], folder });
  const rules = compiled(proposal);
  const at = (text: string, where: string): string =>
    policy.decide(text, { ...AROUND, folder: where, mode: "workspace-write", rules }).decision;
  assert.deepEqual([at("./run.sh", folder), at("echo x > out", folder)], ["allow", "allow"]);
  assert.deepEqual([at("./run.sh", AROUND.workspace), at("echo x > out", AROUND.workspace)], ["ask", "ask"]);
  const shown = proposal.examples.filter(({ want }) => want === "allow").map(({ cmd }) => cmd);
  assert.deepEqual(shown, ["cd 'my web' && ./run.sh", "cd 'my web' && echo x > out"]);
});

test("every example gets its stated verdict under the rules, and each kind of verdict occurs", () => {
  const commands = [
    "npm test",
    "npm run build",
    "echo x > out.txt",
    "! rm -rf ~",
    "? curl https://a.example.org",
  ];
  const proposal = proposed({ commands });
  const rules = compiled(proposal);
  for (const { cmd, want, mode } of proposal.examples) {
    const got = verdict(cmd, rules, mode);
    assert.ok(want === "not-allow" ? got !== "allow" : got === want, `${cmd}: ${got}`);
  }
  const wanted = proposal.examples.map(({ want, class: group }) => `${group} ${want}`);
  assert.deepEqual(
    [...new Set(wanted)],
    ["recorded allow", "refused deny", "refused not-allow", "beyond not-allow"],
  );
});

test("several runs are combined, and their programs, rules and paths are counted", () => {
  const recording = recorded(
    { commands: ["npm run build"] },
    { commands: ["npm run build", "make all > log"] },
  );
  const { rules, needed } = proposePolicy(recording, AROUND);
  assert.deepEqual(words({ rules } as Proposal), [
    { prefix: ["npm", "run", "build"], exact: true },
    { effect: "write", path: "log" },
    { prefix: ["make", "all"], exact: true },
  ]);
  assert.deepEqual(needed.programs, { npm: 2, make: 1 });
  assert.deepEqual(needed.writes, { log: 1 });
  assert.deepEqual(needed.rules, { "code.project": 3, "write.workspace": 1 });
});

test("the file is valid TOML, with everything left out as one-line comments", () => {
  const commands = ["echo 'a\nb' > 'x \"y\".txt'", 'eval "$x"\nls', "? git push"];
  const proposal = proposed({ commands, granted: ["a.example.org"], connections: ["- a.example.org:443"] });
  const text = proposalText(proposal, ["s1", "s2"]);
  const { rule } = parse(text) as unknown as { readonly rule: readonly RuleForm[] };
  assert.deepEqual(structuredClone(rule), proposal.rules);
  const comments = text.split("\n").filter((line) => line.startsWith("#"));
  assert.match(comments.join("\n"), /s1, s2 needed.*--allow-domain a\.example\.org:443/s);
  assert.match(
    comments.join("\n"),
    /Not allowed by any rule here:\n# {3}eval "\$x".*Refused, so not proposed:\n# {3}git push/s,
  );
  assert.deepEqual(Object.keys(parse(proposalText(proposed({ commands: ["ls"] }), ["s1"]))), []);
});
