import type { Settings } from "../../config/settings-schema.ts";
import { isPreset, parseGrant } from "../../core/network.ts";
import { askRegistries, type RegistryQuestion } from "../../docker/egress/registries.ts";
import { boxImage } from "../../docker/box-image.ts";
import { type Engine, findEngine, isEngine } from "../../docker/engine.ts";
import type { Recipe } from "../../docker/environments/recipe.ts";
import { systemRegistries } from "../../docker/environments/system-steps.ts";
import { askHost } from "../../platform/host-programs.ts";
import { runOnce } from "../../docker/engine-health.ts";
import type { NetworkRequest } from "../../docker/egress/box-network.ts";
import { hostTrust } from "../../docker/egress/host-trust.ts";
import {
  ageNote,
  ageVariables,
  managersWithoutAge,
  withoutAge,
} from "../../docker/environments/tool-variables.ts";
import { boundsOf, registryFiles, registryVariables } from "../granted-network.ts";
import { type Host, packageRoot } from "../host.ts";

/** What an environment's set-up needs for its network. */
interface SetUp {
  readonly host: Host;
  readonly settings: Settings;
  readonly workspace: string;
  readonly warn: (text: string) => void;
  readonly signal: AbortSignal;
}

/** Grants exactly the registries of the recipe, and whatever else the user granted. */
export async function networkOf(
  { host, settings, workspace, warn, signal }: SetUp,
  registries: readonly string[],
  askBox?: RegistryQuestion["askBox"],
): Promise<NetworkRequest | undefined> {
  const names = [...new Set([...registries, ...settings.allow_domains])];
  if (names.length === 0) return undefined;
  const question = { env: host.env, workspace, uid: host.uid, state: host.places.state, signal };
  const [asked, roots] = await Promise.all([
    askRegistries({
      ...question,
      presets: names.filter(isPreset),
      ...(askBox === undefined ? {} : { askBox, boxHasYarn: true }),
    }),
    hostTrust(host.env, warn),
  ]);
  const hosts = names.filter((name) => !isPreset(name)).map((name) => parseGrant(name));
  const presets = new Set<string>(names.filter(isPreset));
  return {
    grants: [...hosts, ...asked.flatMap(({ grants }) => grants)],
    ...boundsOf(settings),
    // The host's variables, for the proxies that they name; the box gets none of them.
    env: host.env,
    // A recipe decides whether install scripts run; detected recipes leave them out.
    variables: {
      ...registryVariables(asked),
      ...ageVariables(presets, settings.min_release_age, Date.now()),
    },
    files: registryFiles(asked),
    roots,
    trust: () => Promise.resolve(roots),
  };
}

/** The label of every container that only looks at an image. */
const LABELS = { "dev.harness.check": "1" };

/** Asks tools of an image in a container without network or workspace. */
export const askerIn =
  (engine: Engine, image: string): NonNullable<RegistryQuestion["askBox"]> =>
  async (argv) => {
    const words = ["sh", "-c", 'command -v "$1" >/dev/null 2>&1 && exec "$@"', "sh", ...argv];
    const once = { root: packageRoot, image, argv: words, memory: 512 * 2 ** 20, pids: 128, labels: LABELS };
    // An image without a shell has no tool to ask either.
    const said = await runOnce(engine, once, 30_000).catch(() => undefined);
    return said?.exit_code === 0 ? said.stdout : null;
  };

/**
 * Asks tools of the image that boxes with these settings start from; answers null if there is no engine or no image.
 */
export async function askerOf(
  host: Host,
  image: string | null,
  signal: AbortSignal,
): Promise<NonNullable<RegistryQuestion["askBox"]>> {
  const engine = await findEngine(host.env, host.uid, signal);
  if (!isEngine(engine)) return () => Promise.resolve(null);
  const found = await boxImage(engine, packageRoot, image).catch(() => undefined);
  return found === undefined ? () => Promise.resolve(null) : askerIn(engine, found.id);
}

/** The GOPROXY of the user's own Go; empty if there is none. */
export async function goProxyOf({ host, workspace, signal }: SetUp): Promise<string> {
  const answer = await askHost(["go", "env", "GOPROXY"], {
    env: host.env,
    cwd: "/",
    apart: workspace,
    signal,
  });
  return answer?.code === 0 ? answer.stdout.trim() : "";
}

/** Warns about registries and package managers to which the minimum release age does not apply. */
export function warnOfAgeless(recipe: Recipe, { settings, warn }: Pick<SetUp, "settings" | "warn">): void {
  if (settings.min_release_age === 0) return;
  const presets = [...new Set([...recipe.registries, ...systemRegistries({ recipe })])];
  const { php, ruby } = recipe.toolchains;
  const note = ageNote([
    ...withoutAge(presets),
    ...managersWithoutAge(recipe.managers),
    ...(php === undefined ? [] : ["composer"]),
    ...(ruby === undefined ? [] : ["bundler"]),
  ]);
  if (note !== undefined) warn(note);
}
