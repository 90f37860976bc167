import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { isIP } from "node:net";
import path from "node:path";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { type Grant, type Preset, readGrant } from "../../core/network.ts";
import { fieldsOf } from "../../core/raw-data.ts";
import { readRegular, replaceFile } from "../../platform/safe-files.ts";
import { askHost } from "../../platform/host-programs.ts";
import { addressClass } from "./judge-host.ts";
import { type ToolQuestion, REGISTRY_TOOLS, yarnRegistry } from "./registry-tools.ts";
import { makeFolder } from "../../platform/folders.ts";

/*
 * The hosts behind presets. What a registry says about the place of its files is kept for a week, while the tools'
 * settings stay the same; the settings themselves are read every time.
 */

export interface RegistryQuestion {
  readonly presets: readonly Preset[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly workspace: string;
  /** The top of the repository around the workspace; left out if the workspace is that top. */
  readonly top?: string | undefined;
  readonly uid: number;
  /** The folder of the harness's own state. */
  readonly state: string;
  readonly signal: AbortSignal;
  /** Asks a tool in the box if the host has none; null if the box does not have it either, or if it fails. */
  readonly askBox?: (argv: readonly [string, ...string[]]) => Promise<string | null>;
  /** The box has a yarn, whose registry counts besides those of the host's npm. */
  readonly boxHasYarn?: boolean;
}

export interface PresetGrants {
  readonly preset: Preset;
  /** Reading methods only; each grant is for one name with its port. */
  readonly grants: readonly Grant[];
  /** Variables for commands of the box: those settings of the user's tool that the tool reads from the environment. */
  readonly variables: Readonly<Record<string, string>>;
  /** Files with such settings, by their names in the folder of the box's network. */
  readonly settings: Readonly<Record<string, string>>;
  /** Whether the host's or the box's tool was asked. */
  readonly source: "host" | "box";
}

/** Grants nothing in part: if the tools of a preset cannot be asked, this fails and says what to write by hand. */
export async function askRegistries(question: RegistryQuestion): Promise<readonly PresetGrants[]> {
  const folder = path.join(question.state, "registries");
  makeFolder(folder);
  const scratch = await mkdtemp(path.join(folder, "asking-"));
  try {
    const presets = [...new Set(question.presets)];
    return await Promise.all(
      presets.map(async (preset) => {
        const own = path.join(scratch, preset);
        await mkdir(own);
        return grantsOf(preset, { ...question, folder, scratch: own });
      }),
    );
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

type RegistryContext = RegistryQuestion & { readonly folder: string; readonly scratch: string };

async function grantsOf(preset: Preset, place: RegistryContext): Promise<PresetGrants> {
  const { askBox, folder, boxHasYarn } = place;
  const ask = REGISTRY_TOOLS[preset];
  const host = await ask(hostAsking(place));
  if (host.urls === null) {
    const boxUrls = askBox === undefined ? null : (await ask(boxAsking(place, askBox))).urls;
    const box = boxUrls === null ? null : exceptHome(boxUrls, []);
    if (box === null || box.length === 0) throw unanswered(preset, "no tool here knows its registry");
    return { preset, grants: grantsFor(preset, box), variables: {}, settings: {}, source: "box" };
  }
  const { urls, files, variables = {}, settings = {}, own } = host;
  const named = files === undefined ? [] : await cachedUrls(path.join(folder, `${preset}.json`), urls, files);
  // The box may have a yarn even if the host has none.
  const yarn =
    preset === "npm" && askBox !== undefined && boxHasYarn === true
      ? await yarnRegistry(boxAsking(place, askBox).run)
      : [];
  const grants =
    own === undefined
      ? grantsFor(preset, [...urls, ...exceptHome([...named, ...yarn], urls)])
      : remoteGrants(preset, urls, own);
  if (grants.length === 0) throw unanswered(preset, WHY_NONE[preset] ?? "its tool named no registry");
  return { preset, grants, variables, settings, source: "host" };
}

const WHY_NONE: Partial<Record<Preset, string>> = {
  git: "this workspace has no remote with an https address that is a name or a public address",
  cargo: "cargo could not reach its index",
  maven: "mvn named no repository",
};

const unanswered = (preset: Preset, why: string): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `${preset}: ${why}`,
    `name it by hand: --allow-domain ${preset}=registry.example.org:443`,
  );

const hostAsking = ({ env, scratch, workspace, top, uid, signal }: RegistryContext): ToolQuestion => ({
  env,
  scratch,
  workspace: top ?? workspace,
  uid,
  run: async (argv, { env: more = {}, cwd = scratch, enough } = {}) => {
    const question = { env: { ...env, ...more }, cwd, apart: top ?? workspace, signal };
    const result = await askHost(argv, enough === undefined ? question : { ...question, enough });
    if (result === null) return null;
    return result.code === 0 || (enough !== undefined && result.code === null) ? result.stdout : null;
  },
});

/** The box's tools have no network and none of the user's settings: they report their defaults. */
const boxAsking = (place: RegistryContext, run: NonNullable<RegistryQuestion["askBox"]>): ToolQuestion => ({
  ...hostAsking(place),
  run: (argv) => run(argv),
});

/**
 * Names that come from a registry, an image or a repository were not written by the user: they never lead to this host
 * itself or to a cloud's metadata, except for hosts that the user's settings name.
 */
function exceptHome(urls: readonly string[], settings: readonly string[]): readonly string[] {
  const own = new Set(settings.map(hostOf));
  return urls.filter((text) => own.has(hostOf(text)) || !leadsHome(hostOf(text).replace(/^\[(.*)\]$/, "$1")));
}

/**
 * A repository's remotes are its own words, whether it came as a clone or in an archive: they lead to public addresses
 * only, except to servers that the user's own git settings name.
 */
function remoteGrants(preset: Preset, urls: readonly string[], own: readonly string[]): readonly Grant[] {
  const known = new Set(own);
  const allowed = exceptHome(urls, []).filter((url) => known.has(url) || !isPrivateAddress(hostOf(url)));
  const inside = grantsFor(
    preset,
    allowed.filter((url) => known.has(url)),
  );
  const names = new Set(inside.map(nameOf));
  const outside = grantsFor(preset, allowed).filter((grant) => !names.has(nameOf(grant)));
  return [...inside, ...outside.map((grant) => ({ ...grant, private: false }))];
}

const isPrivateAddress = (host: string): boolean => {
  const plain = host.replace(/^\[(.*)\]$/, "$1");
  return isIP(plain) !== 0 && addressClass(plain) !== "public";
};

const nameOf = ({ host, ports }: Grant): string => `${host}:${ports.join()}`;

const hostOf = (text: string): string => URL.parse(text)?.hostname.replace(/\.$/, "") ?? "";

const leadsHome = (host: string): boolean =>
  isIP(host) === 0
    ? /(?:^|\.)localhost$/.test(host)
    : ["loopback", "metadata", "never"].includes(addressClass(host));

function grantsFor(preset: Preset, urls: readonly string[]): readonly Grant[] {
  const grants = urls.flatMap((text) => {
    const url = URL.parse(text);
    // An address must name one host, not a pattern of many.
    if (url === null || !/^https?:$/.test(url.protocol) || url.hostname.includes("*")) return [];
    const port = url.port === "" ? (url.protocol === "https:" ? "443" : "80") : url.port;
    const read = readGrant(`${preset}=${url.hostname.replace(/\.$/, "")}:${port}:private`);
    return read.kind === "grant" ? [read.grant] : [];
  });
  const names = new Map(grants.map((grant) => [nameOf(grant), grant]));
  return [...names.values()];
}

const WEEK_MS = 7 * 24 * 60 * 60_000;
/** An answer that names nothing may be due to a missing network. */
const EMPTY_ANSWER_MS = 60_000;

async function cachedUrls(
  file: string,
  urls: readonly string[],
  ask: () => Promise<readonly string[]>,
): Promise<readonly string[]> {
  const key = createHash("sha256").update(JSON.stringify(urls)).digest("hex");
  const known = await readCache(file);
  if (known?.key === key && known.until > Date.now()) return known.urls;
  const origins = (await ask()).map(withoutUser).filter((url) => url !== undefined);
  const until = Date.now() + (origins.length === 0 ? EMPTY_ANSWER_MS : WEEK_MS);
  await replaceFile(file, JSON.stringify({ key, until, urls: origins }), { lasts: "content" });
  return origins;
}

/** Only the origin: whatever else a registry's address holds is not kept. */
const withoutUser = (text: string): string | undefined => URL.parse(text)?.origin;

async function readCache(
  file: string,
): Promise<{ readonly key: string; readonly until: number; readonly urls: readonly string[] } | undefined> {
  try {
    const value: unknown = JSON.parse(
      (await readRegular(file, { links: "refuse", max: 2 ** 20 })).toString(),
    );
    const { key, until, urls } = fieldsOf(value);
    if (typeof key !== "string" || typeof until !== "number" || !Array.isArray(urls)) return undefined;
    return { key, until, urls: urls.filter((url) => typeof url === "string") };
  } catch {
    return undefined;
  }
}
