import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import type { ContainerCreateOptions } from "dockerode";
import { engine } from "../fixtures/engine-api.ts";
import { image } from "../fixtures/engine.ts";
import { ULIMITS } from "../fixtures/escape-plain.ts";

type HostConfig = NonNullable<ContainerCreateOptions["HostConfig"]>;

/**
 * The output of one command in a container without our restrictions and with the case's further changes. The command is
 * killed after `seconds`, which must be much longer than it takes on a busy machine.
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

/**
 * No profile, plus the capability that most restrictions depend on; still without network and in separate namespaces.
 */
export const ADMIN: HostConfig = {
  CapAdd: ["SYS_ADMIN"],
  SecurityOpt: ["seccomp=unconfined", "apparmor=unconfined"],
};
