import assert from "node:assert/strict";
import test from "node:test";
import { decidePath } from "../../src/policy/paths/decide-path.ts";
import { AROUND, policy, rulesFrom, verdict, type Written } from "./judged.ts";

type Row = readonly [text: string, verdict: "allow" | "ask" | "deny"];

const CASES: Readonly<Record<string, readonly [rule: Written, rows: readonly Row[]]>> = {
  "a denied prefix is denied wherever it occurs, with any path": [
    { prefix: ["cat", "x"], decision: "deny" },
    [
      ["cat x", "deny"],
      ["cat x y", "deny"],
      ["cat y x", "allow"],
      ["/bin/cat x", "deny"],
      ["./cat x", "deny"],
      ["ls && timeout 3 cat x | wc", "deny"],
      ['echo "$(cat x)"', "deny"],
      ["bash -c 'cat x'", "deny"],
    ],
  ],
  "a rule can match an argument in any position, with a star for any text": [
    { prefix: ["ls"], arg: "--col*", decision: "ask" },
    [
      ["ls --color", "ask"],
      ["ls src --color=always", "ask"],
      ["ls -l", "allow"],
      ["cat --color", "ask"],
    ],
  ],
  "a rule can match an argument of any command": [
    { arg: "secret", decision: "deny" },
    [
      ["echo secret", "deny"],
      ["echo secrets", "allow"],
      ["secret", "ask"],
    ],
  ],
  "a rule can match a path in any letter case, and trees that contain it": [
    { path: "keep/**", decision: "deny" },
    [
      ["cat keep/a", "deny"],
      ["cat Keep/A", "deny"],
      ["echo x > keep/b", "deny"],
      ["rm -r keep", "deny"],
      ["cat src/../keep/a", "deny"],
      ["cat k*/a", "deny"],
      ["cat src/a", "allow"],
      ["ls", "allow"],
    ],
  ],
  "a rule can match one effect on a path": [
    { effect: "write", path: "dist/**", decision: "deny" },
    [
      ["cat dist/a", "allow"],
      ["echo x > dist/a", "deny"],
    ],
  ],
  "a rule can match an effect by its kind or its id": [
    { effect: ["network", "code.project"], decision: "deny" },
    [
      ["./run.sh", "deny"],
      ["cat < /dev/tcp/a/80", "deny"],
      ["ls", "allow"],
    ],
  ],
  "a rule can match any of several hosts": [
    { host: ["evil.org", "*.evil.org"], decision: "deny" },
    [
      ["cat < /dev/tcp/a.EVIL.org/80", "deny"],
      ["cat < /dev/tcp/example.com/80", "ask"],
    ],
  ],
};

for (const [name, [rule, rows]] of Object.entries(CASES))
  test(name, () => {
    const rules = rulesFrom([rule]);
    assert.deepEqual(
      rows.map(([text]) => [text, verdict(text, rules)]),
      rows,
    );
  });

test("the strictest of a user's rules wins, in any order", () => {
  const allow: Written = { prefix: ["frob"], decision: "allow" };
  const ask: Written = { prefix: ["frob", "x"], decision: "ask" };
  const deny: Written = { prefix: ["frob", "x", "y"], decision: "deny" };
  for (const list of [
    [allow, ask, deny],
    [deny, ask, allow],
  ]) {
    const rules = rulesFrom(list);
    assert.deepEqual(
      ["frob", "frob x", "frob x y"].map((text) => verdict(text, rules)),
      ["allow", "ask", "deny"],
    );
  }
});

test("danger-full-access allows what a rule asks about, and denies what a rule denies", () => {
  const rules = rulesFrom([
    { prefix: ["ls"], decision: "ask" },
    { prefix: ["cat"], decision: "deny" },
  ]);
  assert.deepEqual(
    ["ls", "cat x"].map((text) => verdict(text, rules, "danger-full-access")),
    ["allow", "deny"],
  );
});

test("a rule that tightens does not change containment", () => {
  const rules = rulesFrom([{ prefix: ["ls"], decision: "ask" }]);
  const { contained } = policy.decide("ls src", { ...AROUND, mode: "workspace-write", rules });
  assert.equal(contained, true);
});

test("rules about paths apply to the file tools too", () => {
  const rules = rulesFrom([
    { id: "keep", path: "keep/**", effect: "write", decision: "deny" },
    { id: "notes", path: "~/notes/**", effect: "read", decision: "allow" },
    { id: "cat", prefix: ["cat"], path: "src/**", decision: "deny" },
  ]);
  const rows = [
    ["keep/a", "write", "deny"],
    ["keep/a", "read", "allow"],
    ["/home/dev/notes/a", "read", "allow"],
    ["/home/dev/notes/a", "write", "ask"],
    ["/home/dev/notes/.ssh/id_rsa", "read", "allow"],
    ["/home/dev/other", "read", "ask"],
    ["src/a", "read", "allow"],
    [".git/config", "write", "deny"],
  ] as const;
  assert.deepEqual(
    rows.map(([path, op]) => [
      path,
      op,
      decidePath(path, op, { ...AROUND, mode: "workspace-write", rules }).decision,
    ]),
    rows,
  );
});

test("a link that leads elsewhere needs a rule for its target", () => {
  const rules = rulesFrom([{ path: "~/notes/**", effect: "read", decision: "allow" }]);
  const { rules: matched } = decidePath("/home/dev/notes/a", "read", {
    ...AROUND,
    mode: "workspace-write",
    rules,
  });
  assert.deepEqual(matched, [{ id: "user.1", reason: "because", span: [0, 17] }]);
});
