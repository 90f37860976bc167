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
  ["a tool without effects gets no verdict", {}, undefined],
  [
    "a service of the settings is contained",
    { services: ["api.example:443"] },
    ["ask", true, ["tool.service"], []],
  ],
  [
    "a service whose host is denied is not contained",
    { services: ["api.example:443"], denied: ["api.example"] },
    ["ask", false, ["tool.service"], []],
  ],
  [
    "a rule can allow a service in read-only mode",
    { services: ["api.example"], rules: ALLOW, mode: "read-only" },
    ["allow", true, ["user.1"], []],
  ],
  [
    "a rule can deny a service",
    { services: ["api.example"], rules: DENY },
    ["deny", true, ["user.1", "tool.service"], []],
  ],
  [
    "a rule that denies a host also denies it to tools, with a port and in any letter case",
    { hosts: ["API.example:8443"], granted: ["api.example:8443"], rules: FAR_HOST },
    ["deny", true, ["user.1", "tool.network"], []],
  ],
  [
    "a rule that denies the network also denies services of the settings",
    { services: ["api.example"], rules: NO_NETWORK },
    ["deny", true, ["user.1", "tool.service"], []],
  ],
  [
    "a rule for other hosts, or for a command, does not deny a tool",
    { hosts: ["api.example"], granted: ["api.example"], rules: OTHER_HOST },
    ["ask", true, ["tool.network"], []],
  ],
  [
    "a rule that denies the network does not affect a tool that reaches no host",
    { program: "box", rules: [...NO_NETWORK, ...NO_WRITES] },
    ["ask", true, ["tool.program"], []],
  ],
  [
    "a host on another port needs a grant with that port",
    { hosts: ["a.example:8080"], granted: ["a.example"] },
    ["ask", false, ["tool.network"], ["a.example:8080"]],
  ],
  [
    "a host granted with its port is contained",
    { hosts: ["a.example:8080"], granted: ["a.example:8080"] },
    ["ask", true, ["tool.network"], []],
  ],
  [
    "a grant of another port does not cover a host without a port",
    { hosts: ["a.example"], granted: ["a.example:8080"] },
    ["ask", false, ["tool.network"], ["a.example"]],
  ],
  [
    "a host without a port means port 443",
    { hosts: ["a.example"], granted: ["a.example:443"] },
    ["ask", true, ["tool.network"], []],
  ],
  [
    "a host without a port does not mean port 80",
    { hosts: ["a.example"], granted: ["a.example:80"] },
    ["ask", false, ["tool.network"], ["a.example"]],
  ],
  [
    "for port 80 the name alone is proposed as the grant",
    { hosts: ["a.example:80"], granted: [] },
    ["ask", false, ["tool.network"], ["a.example"]],
  ],
  [
    "for a host on the local network the grant needs a port",
    { hosts: ["printer:80"], granted: [] },
    ["ask", false, ["tool.network"], ["printer:80"]],
  ],
  [
    "an IPv6 address is granted with its port",
    { hosts: ["[::1]:81"], granted: ["[::1]:81"] },
    ["ask", true, ["tool.network"], []],
  ],
  [
    "a grant with a port does not override a denied host",
    { hosts: ["a.example:81"], granted: ["a.example:81"], denied: ["*.example"] },
    ["ask", false, ["tool.network"], []],
  ],
  ["a rule that allows does not add a verdict to a tool without effects", { rules: ALLOW }, undefined],
  [
    "a rule for another tool does not either",
    { rules: rulesOf({ tool: "other", decision: "deny" }) },
    undefined,
  ],
  ["a rule denies any tool", { rules: DENY }, ["deny", true, ["user.1"], []]],
  ["a program in the box is contained", { program: "box" }, ["ask", true, ["tool.program"], []]],
  [
    "a program in the box is not contained where hosts are granted",
    { program: "box", granted: ["a.example"] },
    ["ask", false, ["tool.program"], []],
  ],
  [
    "a rule can allow a program in the box",
    { program: "box", rules: ALLOW },
    ["allow", true, ["user.1"], []],
  ],
  [
    "a rule cannot allow a program in the box in read-only mode",
    { program: "box", rules: ALLOW, mode: "read-only" },
    ["ask", true, ["tool.program"], []],
  ],
  [
    "a rule that denies takes precedence over one that allows",
    { program: "box", rules: [...ALLOW, ...rulesOf({ id: "no", tool: "tracker__find", decision: "deny" })] },
    ["deny", true, ["user.no", "user.1"], []],
  ],
  ["a program on the host is not contained", { program: "host" }, ["ask", false, ["tool.host"], []]],
  [
    "a rule can allow a program on the host",
    { program: "host", rules: ALLOW },
    ["allow", false, ["user.1"], []],
  ],
  [
    "full access allows what would require confirmation",
    { program: "host", mode: "danger-full-access" },
    ["allow", false, ["tool.host"], []],
  ],
  [
    "full access allows what a rule asks about",
    { program: "box", mode: "danger-full-access", rules: ASK },
    ["allow", true, ["user.mine", "tool.program"], []],
  ],
  [
    "full access does not allow what a rule denies",
    { program: "box", mode: "danger-full-access", rules: DENY },
    ["deny", true, ["user.1", "tool.program"], []],
  ],
  [
    "a host without a grant is listed as wanted",
    { hosts: ["a.example", "b.example"], granted: ["b.example"] },
    ["ask", false, ["tool.network"], ["a.example", "b.example"]],
  ],
  [
    "a granted host is contained, in any letter case",
    { hosts: ["A.example"], granted: ["a.example"] },
    ["ask", true, ["tool.network"], []],
  ],
  [
    "a denied host is not listed as wanted",
    { hosts: ["a.example"], denied: ["a.example"] },
    ["ask", false, ["tool.network"], []],
  ],
  [
    "a rule can allow a host",
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
  test(`the rule ${JSON.stringify(written)} is reported as wrong`, () => {
    const { problems } = readRules([{ reason: "because", ...written }], "user");
    assert.match(problems.map((each) => each.message).join("\n"), message);
  });
