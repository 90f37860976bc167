import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import type Docker from "dockerode";

/** The programs of the throw-away image; all of them dynamic, so their libraries go along. */
const PROGRAMS = ["/bin/sh", "/bin/sleep", "/bin/cat"];

/** Makes a small image from programs of this machine, for engines without a registry. Disposing removes it. */
export async function throwAwayImage(api: Docker, tag: string): Promise<AsyncDisposable & { name: string }> {
  const name = `harness-test-sidecar:${tag}`;
  const [repo] = name.split(":");
  const tar = spawn("tar", ["-chf", "-", "-C", "/", ...filesOf(PROGRAMS)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const answer = await api.importImage(tar.stdout, { repo, tag });
  answer.resume();
  await once(answer, "end");
  return {
    name,
    [Symbol.asyncDispose]: async () => {
      await api.getImage(name).remove({ force: true });
    },
  };
}

/** Paths from the root without the first slash, as tar wants them. */
function filesOf(programs: readonly string[]): readonly string[] {
  const libraries = programs.flatMap((program) =>
    [...execFileSync("ldd", [program], { encoding: "utf8" }).matchAll(/(\/\S+) \(0x/g)].map(
      ([, file]) => file ?? "",
    ),
  );
  return [...new Set([...programs, ...libraries])].map((file) => file.slice(1));
}
