import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import type { ContainerCreateOptions } from "dockerode";
import { engine } from "../fixtures/engine-api.ts";
import { image } from "../fixtures/engine.ts";
import { ULIMITS } from "../fixtures/escape-plain.ts";

type HostConfig = NonNullable<ContainerCreateOptions["HostConfig"]>;

/**
 * What one command says in a container without our locks, and with what else the case takes away from it. It is
 * killed after `seconds`, which has to be well over what all of it takes on a machine with other work.
 */
export async function unlocked(command: string, more: HostConfig = {}, seconds = 20): Promise<string> {
  const container = await engine.api.createContainer({
    Image: image,
    Cmd: ["timeout", "-s", "KILL", String(seconds), "bash", "-c", command],
    HostConfig: {
      NetworkMode: "none",
      Memory: 2 ** 28,
      MemorySwap: 2 ** 28,
      PidsLimit: 128,
      Ulimits: ULIMITS,
      LogConfig: { Type: "none", Config: {} },
      ...more,
    },
  });
  try {
    const stream = await container.attach({ stream: true, stdout: true, stderr: true });
    const all = new PassThrough();
    engine.api.modem.demuxStream(stream, all, all);
    stream.once("close", () => all.end());
    const said = text(all);
    await container.start();
    await container.wait();
    return await said;
  } finally {
    await container.remove({ force: true, v: true });
  }
}

/** No profile, and the right that most of the walls rest on; still without network and in namespaces of its own. */
export const ADMIN: HostConfig = {
  CapAdd: ["SYS_ADMIN"],
  SecurityOpt: ["seccomp=unconfined", "apparmor=unconfined"],
};
