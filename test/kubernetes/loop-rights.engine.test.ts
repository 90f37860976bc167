import assert from "node:assert/strict";
import test from "node:test";
import { boxRules } from "../../src/kubernetes/cluster-rights.ts";
import type { OwnBox } from "../../src/kubernetes/pod-spec.ts";
import { asking, NEVER } from "../contract/box-words.ts";
import { statusOf } from "../fakes/kubernetes-api.ts";
import { image, skip } from "../fixtures/engine.ts";
import { podWants } from "../fixtures/pod-request.ts";
import { poolFor } from "../fixtures/warm-pool.ts";
import { stubPlace } from "./stub-pods.ts";

const PLACE =
  /^\/(?:api|apis\/([^/]+))\/v1(?:beta1)?\/namespaces\/team\/([a-z]+)(?:\/[^/?]+(?:\/(attach))?)?/;
const VERBS: Readonly<Record<string, string>> = { POST: "create", DELETE: "delete", PATCH: "patch" };

/** The right that a request needs, as an API server names it. */
function rightOf(heard: string): string {
  const [method = "", url = ""] = heard.split(" ");
  const { pathname, searchParams } = new URL(url, "http://x");
  const [, group = "", resource = "", attach] = PLACE.exec(pathname) ?? [];
  const isList = pathname.endsWith(`/${resource}`);
  const read = searchParams.get("watch") === "1" ? "watch" : isList ? "list" : "get";
  return `${group}/${resource}${attach === undefined ? "" : "/attach"} ${VERBS[method] ?? read}`;
}

const granted = (boxes: OwnBox, pool = false): readonly string[] =>
  boxRules(boxes, pool).flatMap(({ apiGroups = [], resources = [], verbs }) =>
    resources.flatMap((resource) => verbs.map((verb) => `${apiGroups[0] ?? ""}/${resource} ${verb}`)),
  );

const sorted = (words: Iterable<string>): readonly string[] =>
  [...words].toSorted((a, b) => a.localeCompare(b));

for (const boxes of ["Pod", "Sandbox"] as const)
  test(`the loop's role grants exactly the verbs that a box that is a ${boxes} uses`, { skip }, async () => {
    await using place = await stubPlace("enforced");
    if (boxes === "Sandbox") place.api.installSandboxes();
    {
      await using box = await place.open();
      assert.equal((await box.exec(asking(["true"]), NEVER)).exit_code, 0);
    }
    // Everybody may ask what is served and what one's own rights are.
    const asked = place.api.heard.filter((each) => each.includes("/namespaces/"));
    // A WebSocket is opened with GET; later versions of Kubernetes ask for "create" beside it.
    assert.deepEqual(sorted(new Set([...asked.map(rightOf), "/pods/attach create"])), sorted(granted(boxes)));
  });

test(
  "for a warm pool a box uses exactly the pool rights of the role, and makes no pod",
  { skip },
  async () => {
    await using place = await stubPlace("enforced");
    const wants = { ...podWants(image), warmPool: "boxes" };
    const pool = place.api.installPool(
      poolFor({ place, image, namespace: "team", pool: "boxes", replicas: 1 }),
    );
    await pool.ready();
    {
      await using box = await place.open({ wants });
      assert.equal((await box.exec(asking(["true"]), NEVER)).exit_code, 0);
    }
    const asked = place.api.heard.filter((each) => each.includes("/namespaces/")).map(rightOf);
    // What its own pod would take, and where boxes are Sandboxes what lists those, is not asked for each time.
    const own = new Set([
      "/pods create",
      "/pods delete",
      "/pods watch",
      "networking.k8s.io/networkpolicies delete",
    ]);
    const missing = granted("Pod", true).filter((right) => !asked.includes(right) && !own.has(right));
    assert.deepEqual(missing, ["/pods/attach create"]);
    const more = new Set(asked.filter((right) => !granted("Pod", true).includes(right)));
    assert.deepEqual([...more], ["agents.x-k8s.io/sandboxes list"]);
  },
);

const CANNOT: readonly (readonly [string, RegExp])[] = [
  ["pods create", /^POST [^?]*\/pods$/],
  ["pods watch", /^GET [^?]*\/pods\?watch=1/],
  ["pods get", /^GET [^?]*\/pods\/[^/?]+$/],
  ["networkpolicies create", /^POST .*networkpolicies/],
  ["networkpolicies list", /^GET [^?]*networkpolicies(?:\?|$)/],
];
for (const [right, fits] of CANNOT)
  test(`without ${right} there is no box, and the error names who refused`, { skip }, async () => {
    await using place = await stubPlace("enforced");
    const body = statusOf(403, "Forbidden", `${right} is forbidden`);
    place.api.faults.push({ fits, times: Infinity, status: 403, body });
    await assert.rejects(place.open(), { exit: 6 });
  });
