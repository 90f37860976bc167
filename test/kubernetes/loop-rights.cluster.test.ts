import assert from "node:assert/strict";
import test from "node:test";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import { LOOP_RULES } from "../../src/kubernetes/cluster-rights.ts";
import { asking, NEVER } from "../contract/box-words.ts";
import type { Rules } from "./cluster-accounts.ts";
import { boxPlace } from "./cluster-boxes.ts";
import { attached, type Cluster } from "./cluster.ts";

/** The role of a batch's loop in a restricted namespace, enforced by a real API server. */

const cluster: Cluster = await attached(process.env["HARNESS_TEST_KUBERNETES"] ?? "tests");
const skip = cluster.network !== "enforced" && `boxes need a network that is shut: it is ${cluster.network}`;

interface Tried {
  readonly thrown: unknown;
  readonly said: readonly string[];
  readonly left: readonly string[];
}

/** Opens, uses and ends a box with these rights: the error, the messages, and what is left behind. */
async function triedWith(rules: Rules): Promise<Tried> {
  await using place = await boxPlace(cluster, { rules });
  const thrown = await (async (): Promise<unknown> => {
    await using box = await place.open();
    const { exit_code, stdout } = await box.exec(asking(["cat", "a.txt"]), NEVER);
    assert.deepEqual([exit_code, Buffer.from(stdout.head).toString()], [0, "one\n"]);
    return undefined;
  })().catch((reason: unknown) => reason);
  const left = [...(await place.named("pods")), ...(await place.named("networkpolicies"))];
  return { thrown, said: place.said, left };
}

test(
  "with the role of a loop, in a restricted namespace, a box is opened, used and removed",
  { skip },
  async () => {
    assert.deepEqual(await triedWith(LOOP_RULES), { thrown: undefined, said: [], left: [] });
  },
);

/**
 * Looking for what an earlier process left needs `list`, and no box does; a version from 1.35 on asks for `create` where
 * this one is content with `get`.
 */
const NOT_MISSED: ReadonlySet<string> = new Set(["pods list", "pods/attach create"]);

const without = (resource: string, verb: string): Rules =>
  LOOP_RULES.map((rule) =>
    rule.resources?.includes(resource) === true
      ? { ...rule, verbs: rule.verbs.filter((one) => one !== verb) }
      : rule,
  );

for (const { resources = [], verbs } of LOOP_RULES)
  for (const right of resources.flatMap((resource) => verbs.map((verb) => `${resource} ${verb}`)))
    test(
      `a loop without ${right} is noticed`,
      { skip: skip || (NOT_MISSED.has(right) && "no box of this release needs it") },
      async () => {
        const [resource = "", verb = ""] = right.split(" ");
        const { thrown, said, left } = await triedWith(without(resource, verb));
        if (thrown === undefined) return assert.ok(said.length > 0 || left.length > 0);
        assert.ok(thrown instanceof HarnessError);
        assert.equal(thrown.exit, EXIT.sandbox);
        assert.match(thrown.message, /forbidden|cannot|not authorised/i);
      },
    );
