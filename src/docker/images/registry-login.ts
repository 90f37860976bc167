import path from "node:path";
import { readRegular } from "../../platform/safe-files.ts";
import { dockerHome } from "../engine-endpoint.ts";

/**
 * Who pushes, as `docker login` keeps it in its own config.json: an entry of `auths` with a name and a password. Helpers that
 * keep passwords elsewhere are programs, and none is asked.
 */
export type RegistryLogin =
  | { readonly kind: "login"; readonly username: string; readonly password: string }
  /** What else is kept there of it, which does not count; undefined: nothing. */
  | { readonly kind: "none"; readonly instead?: string };

const MAX_BYTES = 2 ** 20;

type Fields = Readonly<Record<string, unknown>>;

const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};

export async function registryLogin(
  env: Readonly<Record<string, string | undefined>>,
  repository: string,
): Promise<RegistryLogin> {
  const file = path.join(dockerHome(env), "config.json");
  const read = await readRegular(file, { links: "follow", max: MAX_BYTES }).catch(() => undefined);
  try {
    return loginIn(read === undefined ? {} : fieldsOf(JSON.parse(read.toString("utf8"))), repository);
  } catch {
    // Nothing of the file is repeated: it holds passwords.
    return { kind: "none", instead: `${file} cannot be read as JSON` };
  }
}

/** Of a repository such as registry.example:5000/team/box. */
export const registryOf = (repository: string): string => repository.split("/", 1)[0] ?? "";

export function loginIn(config: Fields, repository: string): RegistryLogin {
  const registry = usual(registryOf(repository));
  const [, entry] =
    Object.entries(fieldsOf(config["auths"])).find(([name]) => hostOf(name) === registry) ?? [];
  const kept = fieldsOf(entry);
  const [, helper = config["credsStore"]] =
    Object.entries(fieldsOf(config["credHelpers"])).find(([name]) => hostOf(name) === registry) ?? [];
  if (typeof kept["auth"] === "string" && kept["auth"] !== "") {
    const text = Buffer.from(kept["auth"], "base64").toString("utf8").replace(/\0+$/, "");
    const colon = text.indexOf(":");
    return colon > 0
      ? { kind: "login", username: text.slice(0, colon), password: text.slice(colon + 1) }
      : { kind: "none", instead: "its entry under auths is not of the form NAME:PASSWORD" };
  }
  if (kept["identitytoken"] !== undefined)
    return { kind: "none", instead: "docker keeps an identity token for it, which is not read" };
  return typeof helper === "string" && helper !== ""
    ? { kind: "none", instead: `docker-credential-${helper} keeps its password, and no such helper is asked` }
    : { kind: "none" };
}

/** Entries may be addresses: https://index.docker.io/v1/. */
const hostOf = (name: string): string => usual(name.replace(/^https?:\/\//, "").replace(/\/.*$/s, ""));

/** The same registry has three names. */
const usual = (host: string): string =>
  host === "index.docker.io" || host === "registry-1.docker.io" ? "docker.io" : host;
