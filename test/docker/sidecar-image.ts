import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, symlink } from "node:fs/promises";
import path from "node:path";
import type Docker from "dockerode";
import { scratch } from "../fixtures/scratch.ts";

/** The programs of the throw-away image; all are dynamically linked, so their libraries are included. */
const PROGRAMS = ["/bin/sh", "/bin/sleep", "/bin/cat"];

type Image = AsyncDisposable & { readonly name: string };

/** Makes a small image from programs of this machine, for engines without a registry. Disposing removes it. */
export const throwAwayImage = (api: Docker, tag: string): Promise<Image> =>
  imported(api, `harness-test-sidecar:${tag}`, ["-C", "/", ...filesOf(PROGRAMS)]);

/**
 * An image with a fake `ollama` that keeps models, and parts of downloads, in its volume: it behaves like `ollama
 * serve` and `ollama list` for the set-up. The image contains the Node that runs the tests, and the fakes' sources.
 */
export async function fakeOllamaImage(api: Docker, name: string): Promise<Image> {
  const fakes = path.join(import.meta.dirname, "..", "fakes");
  await using place = await scratch();
  await place.write("bin/ollama", '#!/bin/node\nimport("/fake/ollama-container.ts");\n', 0o755);
  await mkdir(place.at("fake"));
  await symlink(process.execPath, place.at("bin/node"));
  for (const file of ["ollama-container.ts", "ollama-server.ts", "ollama-chat.ts"])
    await symlink(path.join(fakes, file), place.at("fake", file));
  const libraries = filesOf([process.execPath]).filter((file) => `/${file}` !== process.execPath);
  const words = ["-C", place.path, "bin", "fake", "-C", "/", ...libraries];
  return await imported(api, name, words, 'ENTRYPOINT ["/bin/ollama", "serve"]');
}

async function imported(
  api: Docker,
  name: string,
  words: readonly string[],
  changes?: string,
): Promise<Image> {
  const [repo, tag] = name.split(":");
  const tar = spawn("tar", ["-chf", "-", ...words], { stdio: ["ignore", "pipe", "inherit"] });
  const answer = await api.importImage(tar.stdout, {
    repo,
    tag,
    ...(changes === undefined ? {} : { changes }),
  });
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
