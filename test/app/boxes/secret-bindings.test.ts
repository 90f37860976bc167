import assert from "node:assert/strict";
import test from "node:test";
import { secretBindings } from "../../../src/app/boxes/granted-network.ts";
import { parseGrant } from "../../../src/core/network.ts";

const env = { API_TOKEN: "a-value-of-some-length", SHORT: "abc", ODD: "two\nlines of text" };
const bind = (
  secrets: Readonly<Record<string, string[]>>,
  ...granted: readonly string[]
): ReturnType<typeof secretBindings> =>
  secretBindings(
    { env },
    { secrets },
    granted.map((text) => parseGrant(text)),
  );

test("a secret gets a placeholder that differs from its value, and the hosts it is bound to", () => {
  const [binding, ...more] = bind({ API_TOKEN: ["api.example.org"] }, "api.example.org:443");
  assert.deepEqual(more, []);
  assert.equal(binding?.value, env.API_TOKEN);
  assert.deepEqual(binding.hosts, ["api.example.org"]);
  assert.match(binding.placeholder, /^harness-secret-[0-9a-f]{24}$/);
  assert.deepEqual(bind({ API_TOKEN: ["api.example.org"] }, "*.example.org"), [binding]);
  assert.deepEqual(bind({}), []);
});

const REFUSED: readonly (readonly [
  secrets: Readonly<Record<string, string[]>>,
  granted: readonly string[],
  remedy: RegExp,
])[] = [
  [{ MISSING: ["api.example.org"] }, ["api.example.org"], /^export MISSING=/],
  [{ API_TOKEN: [] }, ["api.example.org"], /--secret API_TOKEN@/],
  [{ API_TOKEN: ["api.example.org"] }, [], /^--allow-domain api\.example\.org$/],
  [{ API_TOKEN: ["api.example.org"] }, ["example.org"], /^--allow-domain api\.example\.org$/],
  [{ API_TOKEN: ["*.example.org"] }, ["api.example.org"], /^--allow-domain \*\.example\.org$/],
  [{ API_TOKEN: ["registry.example.org"] }, ["npm=registry.example.org"], /^--allow-domain registry/],
  [{ SHORT: ["api.example.org"] }, ["api.example.org"], /export SHORT=/],
  [{ ODD: ["api.example.org"] }, ["api.example.org"], /export ODD=/],
];

for (const [secrets, granted, remedy] of REFUSED)
  test(`${JSON.stringify(secrets)} with ${granted.join(", ") || "nothing granted"} is refused without revealing the value`, () =>
    assert.throws(
      () => bind(secrets, ...granted),
      (thrown: Error & { exit?: number; remedy?: string }) => {
        assert.equal(thrown.exit, 2);
        assert.match(thrown.remedy ?? "", remedy);
        assert.doesNotMatch(`${thrown.message} ${thrown.remedy}`, /a-value|two|abc/);
        return true;
      },
    ));

test("in the loop of a row, the remedy names the row's Secret", () => {
  const loop = { env: { HARNESS_POD_NAME: "harness-batch-0-x", SHORT: "abc" } };
  for (const [name, message] of [
    ["MISSING", /^MISSING is not set in the loop's environment$/],
    ["SHORT", /^SHORT has fewer than/],
  ] as const)
    assert.throws(
      () => secretBindings(loop, { secrets: { [name]: ["api.test"] } }, [parseGrant("api.test")]),
      {
        exit: 2,
        message,
        remedy: new RegExp(`put ${name} into the Secret that kubernetes\\.model_secret names$`),
      },
    );
});
