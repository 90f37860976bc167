import assert from "node:assert/strict";
import test from "node:test";
import { filledIn, serverDoes, whyNot, whySlow } from "../../../src/app/project/mcp-plans.ts";
import { mcpServers, type McpServerSettings } from "../../../src/config/mcp-settings.ts";

function server(given: object): McpServerSettings {
  const read = mcpServers.parse({ a: given })["a"];
  assert.ok(read !== undefined);
  return read;
}

const wordsOf = (filled: ReturnType<typeof filledIn>): string =>
  typeof filled === "string" ? filled : assert.fail("nothing is wrong with it");

const ENV = { A: "one", EMPTY: "", EVIL: "${A}" };

for (const [given, expected] of [
  ["${A}", "one"],
  ["x${A}y${A}", "xoneyone"],
  ["${A:-two}", "one"],
  ["${NONE:-two}", "two"],
  ["${NONE:-}", ""],
  ["${EMPTY:-two}", "two"],
  ["${EMPTY}", ""],
  // What a variable says is not read again.
  ["${EVIL}", "${A}"],
  ["$A ${} ${1}", "$A ${} ${1}"],
] as const)
  test(`${given} becomes ${JSON.stringify(expected)}`, () => {
    const filled = filledIn(server({ command: ["p", given], env: { X: given } }), ENV);
    assert.ok(typeof filled === "object" && "command" in filled);
    assert.deepEqual([filled.command[1], filled.env["X"]], [expected, expected]);
  });

test("a missing variable is named, and nothing is started", () => {
  assert.match(
    wordsOf(filledIn(server({ command: "p", env: { X: "${NONE}", Y: "${OTHER}" } }), ENV)),
    /variables are not set here: NONE, OTHER;/,
  );
});

for (const [url, why] of [
  ["${NONE:-ftp://a.org}", /not an http or https address/],
  ["https://a:b@a.org", /has a password in it/],
  ["${A}", /not an http or https address/],
] as const)
  test(`is not a URL once its variables are filled in: ${url}`, () => {
    assert.match(wordsOf(filledIn(server({ url }), ENV)), why);
  });

test("the description of a project's server says what it starts, where, with which variables, and which address it contacts", () => {
  assert.equal(
    serverDoes("x", server({ command: ["node", "s.js\u202e"], env: { T: "${GH_TOKEN}" }, cwd: "sub" })).text,
    'starts in every box in sub, as the MCP server x: ["node","s.js\\u202e"], with the variables T, with your GH_TOKEN',
  );
  assert.equal(
    serverDoes("x", server({ url: "https://${H:-a.org}/mcp", headers: { Authorization: "${K}" } })).text,
    "asks the MCP server x at https://${H:-a.org}/mcp, if its host is granted, with the headers Authorization, with your H, K",
  );
  const outside = serverDoes("x", server({ command: "s", sandbox: false }));
  assert.deepEqual([outside.loosens, /is ignored/.test(outside.text)], [false, true]);
});

test("only the user's own servers are started on the host", () => {
  const outside = server({ command: "s", sandbox: false });
  assert.equal(whyNot(outside, true), undefined);
  assert.match(whyNot(outside, false) ?? "", /runs in the box; sandbox = false/);
  assert.equal(whyNot(server({ command: "s", enabled: false }), true), "it is not enabled");
});

test("the reason why a server is slow depends on how it is started and what is granted, and includes a remedy", () => {
  const npx = server({ command: ["/usr/bin/npx", "-y", "x"] });
  assert.match(whySlow(npx, []), /the box has no access to npm.*harness env build.* --allow-domain npm/);
  assert.match(whySlow(npx, ["pip"]), /no access to npm/);
  for (const granted of ["npm", "npm=npm.example.org:443"])
    assert.doesNotMatch(whySlow(npx, [granted]), /access to npm|env build/, granted);
  assert.match(whySlow(server({ command: ["uvx", "x"] }), []), /--allow-domain pip/);
  assert.match(
    whySlow(server({ command: ["./own"] }), []),
    /the box has no network; if it needs one: --allow-domain HOST/,
  );
  assert.match(whySlow(server({ command: ["./own"] }), ["example.org"]), /^if it needs a host that is not/);
  const onHost = whySlow(server({ command: ["own"], sandbox: false }), []);
  assert.doesNotMatch(onHost, /box/);
  assert.match(onHost, /init_timeout/);
  assert.match(whySlow(server({ url: "https://mcp.example.org/" }), []), /its address did not answer/);
});
