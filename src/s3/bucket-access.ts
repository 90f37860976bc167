import { EXIT, HarnessError } from "../core/errors.ts";
import { visibleLine } from "../core/text/visible.ts";
import type { Credentials } from "./signature.ts";

/** Where buckets are, and the credentials, from the variables that other S3 programs also read. */
export interface BucketAccess {
  readonly credentials: Credentials;
  readonly region: string;
  /** A server of one's own, with the bucket name in the path; null: Amazon's, by region. */
  readonly endpoint: URL | null;
  /** A person's next step: how to set the variable of this name. */
  readonly toSet: (name: string, value: string) => string;
}

type Env = Readonly<Record<string, string | undefined>>;

/** Variables that no run of a row may have. */
export const CREDENTIAL_VARIABLES = [
  "AWS_ACCESS_KEY_ID",
  "AWS_SECRET_ACCESS_KEY",
  "AWS_SESSION_TOKEN",
] as const;

export function bucketAccess(env: Env): BucketAccess {
  const inLoop = env["HARNESS_POD_NAME"] !== undefined;
  const toSet = (name: string, value: string): string =>
    inLoop
      ? `put ${name}=${value} into the Secret that kubernetes.model_secret names`
      : `export ${name}=${value}`;
  const said = (name: string): string | undefined => (env[name] === "" ? undefined : env[name]);
  const needed = (name: string): string => {
    const value = said(name);
    if (value === undefined)
      throw refused(
        `${name} is not set, but a bucket requires it`,
        `${toSet(name, "…")} (docs/kubernetes.md)`,
      );
    return value;
  };
  const credential = (name: string, value: string): string => {
    if (/^[\u0021-\u007e]+$/.test(value)) return value;
    throw refused(
      `${name} contains a space, a line break or another character that no key has`,
      `set it again, without anything around it: ${toSet(name, "…")}`,
    );
  };
  const token = said("AWS_SESSION_TOKEN");
  const [id, secret] = [CREDENTIAL_VARIABLES[0], CREDENTIAL_VARIABLES[1]];
  const credentials: Credentials = {
    accessKeyId: credential(id, needed(id)),
    secretAccessKey: credential(secret, needed(secret)),
    sessionToken: token === undefined ? undefined : credential("AWS_SESSION_TOKEN", token),
  };
  const address = said("AWS_ENDPOINT_URL_S3") ?? said("AWS_ENDPOINT_URL");
  const endpoint = address === undefined ? null : endpointIn(address, toSet);
  const region =
    said("AWS_REGION") ??
    said("AWS_DEFAULT_REGION") ??
    (endpoint === null ? needed("AWS_REGION") : "us-east-1");
  if (!/^[a-z0-9-]{1,40}$/.test(region))
    throw refused(`AWS_REGION is not a region: ${visibleLine(region)}`, toSet("AWS_REGION", "eu-central-1"));
  return { credentials, region, endpoint, toSet };
}

function endpointIn(text: string, toSet: BucketAccess["toSet"]): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (
    url !== undefined &&
    /^https?:$/.test(url.protocol) &&
    `${url.username}${url.password}${url.search}${url.hash}` === ""
  )
    return url;
  // The value may hold a password.
  throw refused(
    "AWS_ENDPOINT_URL is not a plain http or https address",
    toSet("AWS_ENDPOINT_URL", "https://minio.example:9000"),
  );
}

const refused = (message: string, remedy: string): HarnessError =>
  new HarnessError(EXIT.usage, message, remedy);
