import { realpath } from "node:fs/promises";
import path from "node:path";
import { type Fields, fieldsOf } from "../../core/text/json-values.ts";
import { readRegular } from "../../platform/safe-files.ts";
import { dockerHome } from "../engine-endpoint.ts";
import { askCredentialHelper, type HelperQuestion } from "./credential-helper.ts";

/**
 * The login for a push, as `docker login` keeps it: with the helper that docker's own config.json names for the
 * registry, or in an entry of its `auths`.
 */
export type RegistryLogin =
  | { readonly kind: "login"; readonly username: string; readonly password: string }
  /** What a registry issued in place of a password. */
  | { readonly kind: "token"; readonly token: string }
  /** `instead`: what was found for the registry but does not count; undefined: nothing. */
  | { readonly kind: "none"; readonly instead?: string };

const MAX_BYTES = 2 ** 20;

interface LoginQuestion extends Omit<HelperQuestion, "helper" | "server"> {
  readonly repository: string;
}

/** `apart` is the working folder: a config in it is not the user's, and names no program. */
export async function registryLogin(question: LoginQuestion): Promise<RegistryLogin> {
  const { repository, env, apart } = question;
  const file = path.join(dockerHome(env), "config.json");
  const read = await readRegular(file, { links: "follow", max: MAX_BYTES }).catch(() => undefined);
  const config = read === undefined ? {} : jsonIn(read);
  // Nothing of the file is repeated, because it holds passwords.
  if (config === undefined) return { kind: "none", instead: `${file} cannot be read as JSON` };
  const written = loginIn(config, repository);
  const kept = helperIn(config, repository);
  if (kept === undefined) return written;
  const otherwise = (instead: string): RegistryLogin =>
    written.kind === "none" ? { kind: "none", instead } : written;
  if (await liesIn(file, apart))
    return otherwise(`${file} is in this folder, so the helpers that it names are not asked`);
  const answer = await askCredentialHelper({ ...question, ...kept });
  if (answer.kind === "failed") return otherwise(answer.why);
  return answer.kind === "none" ? otherwise(`docker-credential-${kept.helper} has no login for it`) : answer;
}

function jsonIn(bytes: Buffer): Fields | undefined {
  try {
    return fieldsOf(JSON.parse(bytes.toString("utf8")));
  } catch {
    return undefined;
  }
}

async function liesIn(file: string, folder: string): Promise<boolean> {
  const [real, around] = await Promise.all([file, folder].map((each) => realpath(each).catch(() => each)));
  const relative = path.relative(around ?? folder, real ?? file);
  return relative !== ".." && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative);
}

/** The registry of a repository such as registry.example:5000/team/box. */
export const registryOf = (repository: string): string => repository.split("/", 1)[0] ?? "";

/** The entry of a registry, with its name there. */
const entryOf = (fields: unknown, registry: string): readonly [name: string, value: unknown] | undefined =>
  Object.entries(fieldsOf(fields)).find(([name]) => hostOf(name) === registry);

/** Which helper to ask, and for what. A helper for the registry takes precedence over one for all. */
export function helperIn(
  config: Fields,
  repository: string,
): Pick<HelperQuestion, "helper" | "server"> | undefined {
  const registry = canonicalRegistry(registryOf(repository));
  const [name, helper = config["credsStore"]] = entryOf(config["credHelpers"], registry) ?? [];
  if (typeof helper !== "string" || helper === "") return undefined;
  // `docker login` leaves an entry without a password under the name that the helper knows.
  const [written = name] = entryOf(config["auths"], registry) ?? [];
  const usualName = registry === "docker.io" ? "https://index.docker.io/v1/" : registry;
  return { helper, server: written ?? usualName };
}

/** The login in the file itself. */
export function loginIn(config: Fields, repository: string): RegistryLogin {
  const [, entry] = entryOf(config["auths"], canonicalRegistry(registryOf(repository))) ?? [];
  const { auth, identitytoken: token } = fieldsOf(entry);
  if (typeof token === "string" && token !== "") return { kind: "token", token };
  if (typeof auth !== "string" || auth === "") return { kind: "none" };
  const text = Buffer.from(auth, "base64").toString("utf8").replace(/\0+$/, "");
  const colon = text.indexOf(":");
  return colon > 0
    ? { kind: "login", username: text.slice(0, colon), password: text.slice(colon + 1) }
    : { kind: "none", instead: "its entry under auths is not of the form NAME:PASSWORD" };
}

/** Entries may be URLs: https://index.docker.io/v1/. */
const hostOf = (name: string): string =>
  canonicalRegistry(name.replace(/^https?:\/\//, "").replace(/\/.*$/s, ""));

/** These names all mean the same registry. */
const canonicalRegistry = (host: string): string =>
  host === "index.docker.io" || host === "registry-1.docker.io" ? "docker.io" : host;
