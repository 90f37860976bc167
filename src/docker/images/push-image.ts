import type { Readable } from "node:stream";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { visible } from "../../core/text/visible.ts";
import { isMissing } from "../engine-failure.ts";
import { type Engine, isPodman } from "../engine.ts";
import { progressOf } from "./image-progress.ts";
import { type RegistryLogin, registryOf } from "./registry-login.ts";

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
