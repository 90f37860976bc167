import assert from "node:assert/strict";
import { type ImageRegistry, startImageRegistry } from "../fakes/image-registry.ts";
import { type Ended, runProgram } from "../fixtures/cli.ts";
import { ownImage } from "../fixtures/own-image.ts";
import type { PodPlace } from "./pod-place.ts";

/** Environments of pods as users have them: built with this machine's engine and pushed to a test registry. */

const GREET = "printf '#!/bin/sh\\necho hello\\n' > /usr/local/bin/greet; chmod 755 /usr/local/bin/greet";
/** No step needs a network. The base is a small foreign image, since a registry receives all of it anew. */
export const recipeOn = (base: string) => ({
  image: base,
  system: [{ run: GREET }],
  folders: ["deps"],
  setup: [
    {
      run: "echo real > deps/lib.txt; umask 077; mkdir /var/cache/harness/shut; echo kept > /var/cache/harness/shut/a",
    },
  ],
  env: { FLAVOUR: "x" },
  services: [{ name: "clock", start: "touch /tmp/ready; exec sleep 600", health: "test -f /tmp/ready" }],
});

/** For `sh -c`: checks that everything installed, set and started is there and writable. */
export const LOOK =
  'greet; cat deps/lib.txt /var/cache/harness/shut/a; ls deps; echo "$FLAVOUR"; test -f /tmp/ready && touch deps/new /var/cache/harness/new && cat a.txt';
export const SEEN = "hello\nreal\nkept\nlib.txt\nx\none\n";

/** The part of that check that a model may do, and what it writes to the file `seen`. */
export const LOOK_BY_MODEL =
  "greet > seen; cat deps/lib.txt >> seen; printenv FLAVOUR >> seen; test -f /tmp/ready && cat a.txt >> seen";
export const SEEN_BY_MODEL = "hello\nreal\nx\none\n";

export const FILES = { "a.txt": "one\n", "deps/mine.txt": "the host's" };

interface Where {
  readonly place: PodPlace;
  readonly kubeconfig: string;
  /** The cluster's address for `--engine`. */
  readonly engine: string;
  readonly image: string;
}

/** A user whose boxes are pods and whose folder has the recipe `own`. */
export interface EnvironmentUser {
  readonly registry: ImageRegistry;
  readonly type: (...words: readonly string[]) => Promise<Ended>;
  /** Changes settings of pods, besides those of the cluster. */
  readonly configure: (kubernetes: object) => Promise<string>;
  /** Changes these keys of the recipe. */
  readonly change: (recipe: object) => Promise<string>;
  /** Stores credentials for the registry as `docker login` does. */
  readonly login: (username: string, password: string) => Promise<string>;
}

export async function withEnvironment(
  where: Where,
  work: (user: EnvironmentUser) => Promise<void>,
): Promise<void> {
  const {
    place: { place },
    kubeconfig,
    engine,
    image,
  } = where;
  await using base = await ownImage();
  await using registry = await startImageRegistry(place.at("registry"));
  const start = { home: place.at("home"), cwd: place.at("project"), env: { KUBECONFIG: kubeconfig } };
  const type = (...words: readonly string[]): Promise<Ended> => runProgram("bin/harness", words, start);
  const own = "home/.config/harness";
  const recipe = recipeOn(base.name);
  const change = (what: object): Promise<string> =>
    place.write(`${own}/environments/own.json`, JSON.stringify({ ...recipe, ...what }));
  await change({});
  try {
    await work({
      registry,
      type,
      change,
      configure: (kubernetes) => {
        const pods = { image, start_timeout: "120s", ...kubernetes };
        return place.write(`${own}/config.json`, JSON.stringify({ engine, env: "own", kubernetes: pods }));
      },
      login: (username, password) => {
        const auth = Buffer.from(`${username}:${password}`).toString("base64");
        const config = { auths: { [registry.host]: { auth } } };
        return place.write("home/.docker/config.json", JSON.stringify(config));
      },
    });
  } finally {
    const { code, stderr } = await type("env", "rm", "--all");
    assert.equal(code, 0, stderr);
  }
}

export interface Built {
  readonly id: string;
  readonly how: string;
  readonly pushed: { readonly image: string; readonly how: string; readonly layers: number } | null;
}

export async function built({ type }: EnvironmentUser): Promise<Built> {
  const { code, stdout, stderr } = await type("env", "build", "--json");
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as Built;
}
