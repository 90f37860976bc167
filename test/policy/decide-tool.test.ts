import assert from "node:assert/strict";
import test from "node:test";
import type { Mode } from "../../src/core/decision.ts";
import { decideTool } from "../../src/policy/decide-tool.ts";
import { readRules, type UserRules } from "../../src/policy/rule.ts";

const rulesOf = (...written: readonly object[]): UserRules => {
  const { examples, problems } = readRules(
    written.map((each) => ({ reason: "because", ...each })),
    "user",
  );
  assert.deepEqual(problems, []);
  return examples.map(({ rule }) => rule);
};

interface Case {
  readonly program?: "box" | "host";
  readonly hosts?: readonly string[];
  readonly services?: readonly string[];
  readonly mode?: Mode;
  readonly granted?: readonly string[];
  readonly denied?: readonly string[];
  readonly rules?: UserRules;
}

function decide({ program, hosts = [], services = [], mode = "workspace-write", ...context }: Case) {
  const place = program === undefined ? {} : { program };
  const said = decideTool({ tool: "tracker__find", hosts, services, ...place }, { mode, ...context });
  return said && [said.decision, said.contained, said.rules.map(({ id }) => id), said.grants];
}

const ALLOW = rulesOf({ tool: "tracker__*", decision: "allow" });
const DENY = rulesOf({ tool: ["other", "tracker__f*"], decision: "deny" });
const ASK = rulesOf({ id: "mine", tool: "tracker__find", decision: "ask" });

const FAR_HOST = rulesOf({ host: "*.example", decision: "deny" });
const OTHER_HOST = rulesOf(
  { host: "*.other", decision: "deny" },
  { prefix: ["curl"], host: "api.example", decision: "deny" },
);
const NO_NETWORK = rulesOf({ effect: "network", decision: "deny" });
const NO_WRITES = rulesOf({ effect: "write", path: "src/**", decision: "deny" });

const CASES: readonly (readonly [string, Case, ReturnType<typeof decide>])[] = [
  ["nothing to say", {}, undefined],
  [
    "a service of the settings is contained",
    { services: ["api.example:443"] },
    ["ask", true, ["tool.service"], []],
  ],
  [
    "not where its host is denied",
    { services: ["api.example:443"], denied: ["api.example"] },
    ["ask", false, ["tool.service"], []],
  ],
  [
    "a rule lets a service through where nothing may be changed",
    { services: ["api.example"], rules: ALLOW, mode: "read-only" },
    ["allow", true, ["user.1"], []],
  ],
  [
    "and denies it",
    { services: ["api.example"], rules: DENY },
    ["deny", true, ["user.1", "tool.service"], []],
  ],
  [
    "a rule that denies a host denies it to tools, with its port and in any case",
    { hosts: ["API.example:8443"], granted: ["api.example:8443"], rules: FAR_HOST },
    ["deny", true, ["user.1", "tool.network"], []],
  ],
  [
    "and to services of the settings",
    { services: ["api.example"], rules: NO_NETWORK },
    ["deny", true, ["user.1", "tool.service"], []],
  ],
  [
    "one for other hosts, or for a command, does not",
    { hosts: ["api.example"], granted: ["api.example"], rules: OTHER_HOST },
    ["ask", true, ["tool.network"], []],
  ],
  [
    "what reaches no host is not meant",
    { program: "box", rules: [...NO_NETWORK, ...NO_WRITES] },
    ["ask", true, ["tool.program"], []],
  ],
  [
    "a host is granted at its port alone",
    { hosts: ["a.example:8080"], granted: ["a.example"] },
    ["ask", false, ["tool.network"], ["a.example:8080"]],
  ],
  [
    "and there it is contained",
    { hosts: ["a.example:8080"], granted: ["a.example:8080"] },
    ["ask", true, ["tool.network"], []],
  ],
  [
    "a grant of another port does not cover a host without a port",
    { hosts: ["a.example"], granted: ["a.example:8080"] },
    ["ask", false, ["tool.network"], ["a.example"]],
  ],
  [
    "a host without a port is reached at 443",
    { hosts: ["a.example"], granted: ["a.example:443"] },
    ["ask", true, ["tool.network"], []],
  ],
  [
    "not at 80",
    { hosts: ["a.example"], granted: ["a.example:80"] },
    ["ask", false, ["tool.network"], ["a.example"]],
  ],
  [
    "the name alone grants 80, too",
    { hosts: ["a.example:80"], granted: [] },
    ["ask", false, ["tool.network"], ["a.example"]],
  ],
  [
    "except that of one's own network, which needs a port",
    { hosts: ["printer:80"], granted: [] },
    ["ask", false, ["tool.network"], ["printer:80"]],
  ],
  [
    "an address of six, with its port",
    { hosts: ["[::1]:81"], granted: ["[::1]:81"] },
    ["ask", true, ["tool.network"], []],
  ],
  [
    "a port opens nothing that is denied",
    { hosts: ["a.example:81"], granted: ["a.example:81"], denied: ["*.example"] },
    ["ask", false, ["tool.network"], []],
  ],
  ["nor by a rule that allows", { rules: ALLOW }, undefined],
  ["nor by a rule for another", { rules: rulesOf({ tool: "other", decision: "deny" }) }, undefined],
  ["a rule denies any tool", { rules: DENY }, ["deny", true, ["user.1"], []]],
  ["a program in the box is contained", { program: "box" }, ["ask", true, ["tool.program"], []]],
  [
    "where hosts are granted it is not",
    { program: "box", granted: ["a.example"] },
    ["ask", false, ["tool.program"], []],
  ],
  ["a rule lets it through", { program: "box", rules: ALLOW }, ["allow", true, ["user.1"], []]],
  [
    "not where nothing may be changed",
    { program: "box", rules: ALLOW, mode: "read-only" },
    ["ask", true, ["tool.program"], []],
  ],
  [
    "a rule that denies goes before one that allows",
    { program: "box", rules: [...ALLOW, ...rulesOf({ id: "no", tool: "tracker__find", decision: "deny" })] },
    ["deny", true, ["user.no", "user.1"], []],
  ],
  ["a program outside is not contained", { program: "host" }, ["ask", false, ["tool.host"], []]],
  ["a rule lets that through", { program: "host", rules: ALLOW }, ["allow", false, ["user.1"], []]],
  [
    "full access runs what would be asked",
    { program: "host", mode: "danger-full-access" },
    ["allow", false, ["tool.host"], []],
  ],
  [
    "and what a rule wants asked",
    { program: "box", mode: "danger-full-access", rules: ASK },
    ["allow", true, ["user.mine", "tool.program"], []],
  ],
  [
    "but not what one denies",
    { program: "box", mode: "danger-full-access", rules: DENY },
    ["deny", true, ["user.1", "tool.program"], []],
  ],
  [
    "a host that is not granted is wanted",
    { hosts: ["a.example", "b.example"], granted: ["b.example"] },
    ["ask", false, ["tool.network"], ["a.example", "b.example"]],
  ],
  [
    "a granted one is contained",
    { hosts: ["A.example"], granted: ["a.example"] },
    ["ask", true, ["tool.network"], []],
  ],
  [
    "no grant helps against what is denied",
    { hosts: ["a.example"], denied: ["a.example"] },
    ["ask", false, ["tool.network"], []],
  ],
  [
    "a rule lets a host through, too",
    { hosts: ["a.example"], mode: "read-only", rules: ALLOW },
    ["allow", false, ["user.1"], []],
  ],
];

for (const [title, given, wanted] of CASES) test(title, () => assert.deepEqual(decide(given), wanted));

const WRONG: readonly (readonly [object, RegExp])[] = [
  [{ tool: "*", decision: "allow" }, /^tool: matches every tool/],
  [{ tool: ["a", "*_search"], decision: "allow" }, /^tool: matches every tool/],
  [
    { tool: "bash", prefix: ["ls"], decision: "deny" },
    /^prefix: a rule with the condition tool can have no other condition/,
  ],
  [{ tool: "bash", match: ["ls"], decision: "deny" }, /^match: a rule with the condition tool/],
  [{ tool: "", decision: "deny" }, /^tool: expected the name of a tool/],
  [{ tool: [], decision: "deny" }, /^tool: /],
];

for (const [written, message] of WRONG)
  test(`a rule that says ${JSON.stringify(written)} is told`, () => {
    const { problems } = readRules([{ reason: "because", ...written }], "user");
    assert.match(problems.map((each) => each.message).join("\n"), message);
  });
