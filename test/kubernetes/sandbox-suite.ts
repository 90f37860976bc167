import { after, before } from "node:test";
import { type Team, teamOn } from "./batch-place.ts";
import { noController, startSandboxes, stopSandboxes } from "./cluster-sandboxes.ts";
import { attached, type Cluster } from "./cluster.ts";

interface SandboxSuite {
  readonly cluster: Cluster;
  /** Why the tests of the file cannot run here. */
  readonly skip: string | false;
}

/** The cluster of a test file whose tests need the controllers of Sandboxes, which run as long as the tests do. */
export const sandboxSuite = (): Promise<SandboxSuite> =>
  suiteOn("its API refuses the schema of a Sandbox", {
    begin: () => Promise.resolve(),
    end: () => Promise.resolve(),
  });

/** The same for batches, with a team that may run them. */
export async function sandboxBatches(): Promise<SandboxSuite & { readonly team: () => Team }> {
  const shared: { team?: Team } = {};
  const suite = await suiteOn("its Jobs have no back-off for each index", {
    begin: async (cluster) => void (shared.team = await teamOn(cluster)),
    end: async () => shared.team?.[Symbol.asyncDispose](),
  });
  const team = (): Team => {
    if (shared.team === undefined) throw new Error("there is no team: the suite did not begin");
    return shared.team;
  };
  return { ...suite, team };
}

interface Around {
  readonly begin: (cluster: Cluster) => Promise<void>;
  readonly end: () => Promise<void>;
}

async function suiteOn(onOldCluster: string, { begin, end }: Around): Promise<SandboxSuite> {
  const cluster = await attached(process.env["HARNESS_TEST_KUBERNETES"] ?? "tests");
  const skip =
    (cluster.release === "1.20" && onOldCluster) ||
    (cluster.network !== "enforced" && `boxes need a network that is shut: it is ${cluster.network}`) ||
    noController;
  before(async () => {
    if (skip !== false) return;
    await startSandboxes(cluster, (line) => void process.stdout.write(`${line}\n`));
    await begin(cluster);
  });
  after(async () => {
    await end();
    if (skip === false) await stopSandboxes(cluster);
  });
  return { cluster, skip };
}
