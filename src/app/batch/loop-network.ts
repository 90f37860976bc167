import type { Settings } from "../../config/settings-schema.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { isPreset } from "../../core/network.ts";
import { LOOP_VARIABLES } from "../../kubernetes/batch-job.ts";
import { namedIn } from "../granted-network.ts";
import { secretHosts } from "../secret-bindings.ts";

/*
 * The network grants of rows of a Job. A loop is the proxy of its box. It gets the same words as a run here, and reads
 * the values of secrets from its own variables, so that no object of the cluster holds them except the user's Secret.
 */

/**
 * Refuses grants that a loop could not honour as they are meant here, before anything is asked. `env`: the settings of
 * the loop.
 */
export function refuseUngrantable(
  { allow_domains, secrets, kubernetes }: Pick<Settings, "allow_domains" | "secrets" | "kubernetes">,
  env: Readonly<Record<string, string>>,
): void {
  const preset = allow_domains.find((text) => isPreset(text) && text !== "git");
  if (preset !== undefined)
    throw refused(
      `${preset} means the registries that this machine's tools are configured for, and a loop in a cluster does not have them`,
      `name its registry: --allow-domain ${preset}=registry.example.org:443`,
    );
  const names = Object.keys(secretHosts({ secrets }, namedIn(allow_domains)));
  // For these variables the Job's own value overrides the Secret's, and would be sent in its place.
  const own = names.find((name) => LOOP_VARIABLES.includes(name) || Object.hasOwn(env, name));
  if (own !== undefined)
    throw refused(
      `the loop of a row sets ${own} itself, so it cannot be a secret of yours there`,
      "give the secret another name, there and in the Secret of the loop",
    );
  if (names.length > 0 && kubernetes.model_secret === null)
    throw refused(
      `the value of ${names[0]} stays on this machine, and no Secret is set from which loops could read it`,
      `${toSecret("NAME", names)}, then: harness config set kubernetes '{"model_secret": "NAME", …}'`,
    );
}

const toSecret = (secret: string, names: readonly string[]): string =>
  `kubectl create secret generic ${secret}${names.map((name) => ` --from-literal=${name}=…`).join("")}`;

/** A note for users who set these values on this machine, and may not expect loops to read them elsewhere. */
export function secretNote(
  { secrets, kubernetes }: Pick<Settings, "secrets" | "kubernetes">,
  namespace: string,
): string | undefined {
  const names = Object.keys(secrets);
  if (names.length === 0) return undefined;
  return `${names.join(", ")}: loops read it from the Secret ${kubernetes.model_secret ?? ""} in the namespace ${namespace}, never from this machine`;
}

const refused = (message: string, remedy: string): HarnessError =>
  new HarnessError(EXIT.usage, message, remedy);
