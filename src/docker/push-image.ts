import type { Readable } from "node:stream";
import { realpath } from "node:fs/promises";
import path from "node:path";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { visible, visibleLine } from "../core/visible.ts";
import { type Engine, isMissing, isPodman } from "./engine.ts";
import { progressOf } from "./image-progress.ts";
import { type Fields, fieldsOf } from "../core/raw-data.ts";
import { readRegular } from "../platform/safe-files.ts";
import { dockerHome } from "./engine-endpoint.ts";
import { hostProgram, safeEnvironment } from "../platform/host-programs.ts";

/** The way of an image to a registry, with the login that the user's docker has for it. */

interface Push {
  /** The image, by its id or tag. */
  readonly image: string;
  /** Without a tag: registry.example/team/box. */
  readonly repository: string;
  readonly tag: string;
  readonly login: RegistryLogin;
  /** A push without progress for so long is given up; SILENT_PUSH_MS when left out. */
  readonly silenceMs?: number;
  readonly onLine: (text: string) => void;
  readonly signal: AbortSignal;
}

export interface PushedImage {
  /** The registry's answer: sha256:… */
  readonly digest: string;
  /** The number of layers that were sent: the registry had the others. */
  readonly moved: number;
}

const SILENT_PUSH_MS = 5 * 60_000;

/** Pushes an image of the engine to a registry. The name that the image gets for this is removed again. */
export async function pushImage(engine: Engine, push: Push): Promise<PushedImage> {
  const { image, repository, tag } = push;
  const name = `${repository}:${tag}`;
  await engine.api.getImage(image).tag({ repo: repository, tag });
  try {
    return await runPush(engine, push);
  } finally {
    await engine.api
      .getImage(name)
      .remove({ noprune: true })
      .catch((thrown: unknown) => {
        if (!isMissing(thrown)) push.onLine(`${name} stays on the engine: ${reasonOf(thrown)}`);
      });
  }
}

/** The progress of a layer is named by the beginning of its id. */
const PUSHED_LAYER = /^([0-9a-f]{12,64}) Pushed$/;
const DIGEST = /\bdigest: (sha256:[0-9a-f]{64})\b/;
/** An engine may retry for ever, which is no progress. */
const RETRY_LINE = /^(?:\w+ )?(?:Retrying|Waiting)\b/;

async function runPush(engine: Engine, push: Push): Promise<PushedImage> {
  const { repository, tag, login, silenceMs = SILENT_PUSH_MS } = push;
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), silenceMs);
  const abortSignal = AbortSignal.any([push.signal, silence.signal]);
  const moved = new Set<string>();
  let digest: string | undefined;
  try {
    const options = { tag, authconfig: authOf(login, repository), abortSignal };
    const answer = (await engine.api.getImage(repository).push(options)) as Readable;
    for await (const { text } of progressOf(answer, abortSignal)) {
      if (!RETRY_LINE.test(text)) timer.refresh();
      const layer = PUSHED_LAYER.exec(text)?.[1];
      if (layer !== undefined) moved.add(layer);
      digest = DIGEST.exec(text)?.[1] ?? digest;
      push.onLine(text);
    }
  } catch (thrown) {
    push.signal.throwIfAborted();
    const why = silence.signal.aborted
      ? `the push made no progress for ${silenceMs / 1000} s`
      : reasonOf(thrown);
    throw pushFailure(engine, { why, repository, login });
  } finally {
    clearTimeout(timer);
  }
  if (digest === undefined)
    throw pushFailure(engine, { why: "the engine reported no digest of what it pushed", repository, login });
  return { digest, moved: moved.size };
}

interface EngineLogin {
  readonly username: string;
  readonly password: string;
  readonly serveraddress: string;
  readonly identitytoken?: string;
}

/** An engine wants credentials, even empty ones. */
function authOf(login: RegistryLogin, repository: string): EngineLogin {
  const nobody = { username: "", password: "", serveraddress: registryOf(repository) };
  if (login.kind === "token") return { ...nobody, identitytoken: login.token };
  return login.kind === "login" ? { ...nobody, username: login.username, password: login.password } : nobody;
}

type FailureKind =
  | "not authorised"
  | "refused"
  | "no answer"
  | "plain http"
  | "not trusted"
  | "a fault of the registry"
  | "failed";

/** What engines say when a registry refuses; the first match counts. */
const SIGNS: readonly (readonly [RegExp, FailureKind])[] = [
  [/server gave HTTP response to HTTPS client/i, "plain http"],
  [/x509:|tls: failed to verify|certificate (?:is|has|signed)/i, "not trusted"],
  [/unauthori[sz]ed|authentication required|no basic auth|incorrect username|\b401\b/i, "not authorised"],
  [/denied|forbidden|insufficient.scope|not allowed|\b403\b/i, "refused"],
  [
    /connection re(?:fused|set)|no such host|\bEOF\b|broken pipe|timeout|deadline exceeded|no progress|no route|unreachable|\b50[234]\b/i,
    "no answer",
  ],
  [/\b500\b|internal server error|no space left/i, "a fault of the registry"],
];

export const failureKindOf = (why: string): FailureKind =>
  SIGNS.find(([sign]) => sign.test(why))?.[1] ?? "failed";

interface PushFailure {
  readonly why: string;
  readonly repository: string;
  readonly login: RegistryLogin;
}

/** Reports the words of the registry, without the password if they repeat it. */
export function pushFailure(
  engine: Parameters<typeof isPodman>[0],
  { why, repository, login }: PushFailure,
): HarnessError {
  const kind = failureKindOf(why);
  const registry = registryOf(repository);
  const instead = login.kind === "none" && login.instead !== undefined ? ` (${login.instead})` : "";
  const docker = isPodman(engine) ? "podman" : "docker";
  const next: Readonly<Record<FailureKind, string>> = {
    "not authorised": `${docker} login ${registry}${instead}, then: ${AGAIN}`,
    refused: `ask the registry's administrator for the right to push to ${repository}, or whether it is read-only now, then: ${AGAIN}`,
    "no answer": `make sure that ${registry} answers, then: ${AGAIN}`,
    "plain http": `list ${registry} under insecure-registries of the engine, or give it TLS, then: ${AGAIN}`,
    "not trusted": `give the engine its CA certificate (/etc/docker/certs.d/${registry}/ca.crt on the engine's machine), then: ${AGAIN}`,
    "a fault of the registry": `ask the registry's administrator, because its disk may be full, then: ${AGAIN}`,
    failed: AGAIN,
  };
  const masked = withoutLogin(why, login);
  const message = `the environment is built, but could not be pushed to ${repository}: ${kind}: ${visible(masked.slice(0, 500))}`;
  return new HarnessError(EXIT.failed, message, next[kind]);
}

const AGAIN = "harness env build, which pushes what is built";

function withoutLogin(text: string, login: RegistryLogin): string {
  if (login.kind === "none") return text;
  const secret = login.kind === "token" ? login.token : login.password;
  const named = login.kind === "token" ? "" : Buffer.from(`${login.username}:${secret}`).toString("base64");
  return [named, secret, encodeURIComponent(secret)]
    .filter((each) => each !== "")
    .reduce((masked, each) => masked.replaceAll(each, "…"), text);
}

interface PushedReference {
  /** By its digest. */
  readonly image: string;
  readonly repository: string;
  readonly login: RegistryLogin;
}

/** Whether the registry has the image, as far as the engine can tell: if it cannot, the image is pushed again. */
export const isInRegistry = (
  { api }: Engine,
  { image, repository, login }: PushedReference,
): Promise<boolean> =>
  api
    .getImage(image)
    .distribution({ authconfig: authOf(login, repository) })
    .then(
      () => true,
      () => false,
    );

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

const MAX_CONFIG = 2 ** 20;

interface LoginQuestion extends Omit<HelperQuestion, "helper" | "server"> {
  readonly repository: string;
}

/** `apart` is the working folder: a config in it is not the user's, and names no program. */
export async function registryLogin(question: LoginQuestion): Promise<RegistryLogin> {
  const { repository, env, apart } = question;
  const file = path.join(dockerHome(env), "config.json");
  const read = await readRegular(file, { links: "follow", max: MAX_CONFIG }).catch(() => undefined);
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
const registryOf = (repository: string): string => repository.split("/", 1)[0] ?? "";

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

/**
 * Answers of programs that keep passwords for docker (`docker-credential-NAME get`). Only the user's own docker config
 * names such a program; the program gets the user's environment, and its time and its output are limited. Nothing of a
 * good answer is reported.
 */
type HelperAnswer =
  | Exclude<RegistryLogin, { readonly kind: "none" }>
  /** The helper has no login for this registry. */
  | { readonly kind: "none" }
  /** Why the helper gave no login. */
  | { readonly kind: "failed"; readonly why: string };

interface HelperQuestion {
  /** As written in the config: pass, osxkeychain, ecr-login. */
  readonly helper: string;
  /** The name under which the password is kept. */
  readonly server: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** No program in this folder is run. */
  readonly apart: string;
  readonly signal: AbortSignal;
  /** HELPER_MS when left out. */
  readonly ms?: number;
}

/** A person may have to unlock a keychain meanwhile. */
const HELPER_MS = 60_000;
const MAX_OUTPUT = 64 * 1024;
const MAX_MESSAGE_LENGTH = 200;

async function askCredentialHelper(question: HelperQuestion): Promise<HelperAnswer> {
  const { helper, env, apart } = question;
  const name = `docker-credential-${helper}`;
  if (!/^[\w][\w.-]{0,100}$/.test(helper)) return failed("a helper in docker's config has an invalid name");
  const file = await hostProgram(name, env, apart);
  if (file === null) return failed(`there is no program ${name}, which docker's config names`);
  const { stdout, ending } = await runHelper(file, question);
  question.signal.throwIfAborted();
  if (ending === "late") return failed(`${name} gave no answer in ${(question.ms ?? HELPER_MS) / 1000} s`);
  if (ending === "long") return failed(`${name} answers with more than ${MAX_OUTPUT} bytes`);
  if (ending === 0) return answerIn(stdout) ?? failed(`the answer of ${name} is not a login`);
  const message = visibleLine(stdout.trim().slice(0, MAX_MESSAGE_LENGTH));
  // The words of docker's own library for helpers.
  if (/credentials not found in native keychain/i.test(message)) return { kind: "none" };
  return failed(
    `${name} ended with ${ending ?? "a signal"}${message === "" ? ", without a message" : `: ${message}`}`,
  );
}

const failed = (why: string): HelperAnswer => ({ kind: "failed", why });

interface HelperRan {
  readonly stdout: string;
  readonly ending: number | null | "late" | "long";
}

/**
 * Runs the helper in a separate process group, which has no terminal to ask on and is killed as a whole when it is
 * late.
 */
async function runHelper(
  file: string,
  { server, env, apart, signal, ms = HELPER_MS }: HelperQuestion,
): Promise<HelperRan> {
  const child = spawn(file, ["get"], {
    env: safeEnvironment(env, apart),
    cwd: "/",
    detached: true,
    stdio: ["pipe", "pipe", "ignore"],
  });
  const end = new AbortController();
  const stop = AbortSignal.any([signal, end.signal, AbortSignal.timeout(ms)]);
  const pieces: Buffer[] = [];
  let length = 0;
  child.stdin.on("error", () => undefined).end(`${server}\n`);
  child.stdout.on("data", (piece: Buffer) => {
    length += piece.length;
    if (length > MAX_OUTPUT) end.abort();
    else pieces.push(piece);
  });
  try {
    const [code] = (await once(child, "close", { signal: stop })) as [number | null];
    return { stdout: Buffer.concat(pieces).toString("utf8"), ending: length > MAX_OUTPUT ? "long" : code };
  } catch (thrown) {
    if (stop.aborted) return { stdout: "", ending: end.signal.aborted ? "long" : "late" };
    return { stdout: thrown instanceof Error ? thrown.message : "", ending: null };
  } finally {
    child.stdout.destroy();
    endGroup(child.pid);
  }
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // The whole group has ended.
  }
}

/** Docker's library marks a token by a user name that nobody has. */
const TOKEN_NAME = "<token>";

function answerIn(stdout: string): HelperAnswer | undefined {
  let answer: unknown;
  try {
    answer = JSON.parse(stdout);
  } catch {
    return undefined;
  }
  if (typeof answer !== "object" || answer === null) return undefined;
  const { Username: username, Secret: secret } = answer as Readonly<Record<string, unknown>>;
  if (typeof username !== "string" || typeof secret !== "string") return undefined;
  // This is how older helpers say that they have none.
  if (secret === "") return username === "" ? { kind: "none" } : undefined;
  if (username === TOKEN_NAME) return { kind: "token", token: secret };
  return username === "" ? undefined : { kind: "login", username, password: secret };
}
