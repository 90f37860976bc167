import type { ProjectText } from "../../config/load-config.ts";
import { warningHealth, EXIT, HarnessError, type Health, healthy } from "../../core/errors.ts";
import { hunksOf } from "../../core/text/line-diff.ts";
import { visibleLine } from "../../core/visible.ts";
import { type Kind, linesOf, lookAlikesIn, rowOf } from "../../extensions/brought.ts";
import {
  forgetKinds,
  forgetTrust,
  type TrustItem,
  type ProjectTrust,
  recordDeclined,
  recordTrusted,
  type TrustStanding,
  type TrustedFile,
  trustedFile as fileOf,
  type TrustOwner,
  trustOf,
} from "../../extensions/trust.ts";
import type { Host } from "../host.ts";
import { noteTo } from "../stderr-messages.ts";

const ownerOf = ({ places, uid }: Host): TrustOwner => ({
  stateDir: places.state,
  home: places.home,
  uid,
  further: async (kind, top, files) => {
    if (kind !== "devcontainer" || files.length < 2) return [];
    const { contextFiles } = await import("../boxes/workspace-environment.ts");
    return contextFiles(top, files);
  },
});

/** A file that the workspace's project brings, for code that acts on it: only a trusted file counts. */
export const trustedFile = (host: Host, workspace: string, kind: Kind): Promise<TrustedFile> =>
  fileOf(ownerOf(host), workspace, kind);

/** For kinds in which an untrusted file can still tighten: the file with its trust; undefined if it cannot be read. */
export async function projectText(
  host: Host,
  workspace: string,
  kind: "settings" | "rules",
): Promise<ProjectText | undefined> {
  const found = await trustedFile(host, workspace, kind);
  if (found.state === "absent" || found.text === null) return undefined;
  return { file: found.file, text: found.text, trusted: found.state === "trusted" };
}

/** One thing that a project brings, as it is shown to a person. The project's own text is not escaped yet. */
export interface ShownItem {
  readonly kind: Kind;
  readonly what: string;
  /** Relative to the project's top: the main file, then the files that it names. */
  readonly files: readonly string[];
  readonly standing: TrustStanding;
  readonly declined: boolean;
  readonly does: readonly Doing[];
  /** Why it cannot be trusted; null if it can. */
  readonly problem: string | null;
  /** It would have more effect if it was trusted. */
  readonly waits: boolean;
  /** Chats and runs mention it without being asked. */
  readonly told: boolean;
  /** What has changed since it was trusted, in lines of a unified diff. */
  readonly diff: readonly string[];
}

/** What a thing would do once it is trusted. */
export interface Doing {
  /** As the project wrote it: the caller that shows it must escape it. */
  readonly text: string;
  /** It counts only once it is trusted; otherwise it counts at once. */
  readonly loosens: boolean;
}

export interface ShownTrust {
  /** The project's top; null if there is no such folder. */
  readonly project: string | null;
  readonly hash: string;
  readonly damage: string | null;
  readonly gone: readonly Kind[];
  /** Trusted in folders above, and without effect because this project is nearer. Absolute. */
  readonly outer: readonly string[];
  /** Names that look like one that counts. */
  readonly look_alikes: readonly string[];
  readonly items: readonly ShownItem[];
}

interface TrustState {
  readonly trust: ProjectTrust;
  readonly shown: ShownTrust;
}

/** Reads the project's things once: what is shown is exactly what would be recorded. */
export async function readTrust(host: Host, workspace: string): Promise<TrustState> {
  const { trust, shown } = await readFiltered(host, workspace);
  const look_alikes = trust.place === undefined ? [] : await lookAlikesIn(trust.place);
  return { trust, shown: { ...shown, look_alikes } };
}

/**
 * The untrusted things that chats and runs mention by themselves. The rest is not read at their start, so the hash is
 * not that of all things.
 */
export const readUntrusted = (host: Host, workspace: string): Promise<TrustState> =>
  readFiltered(host, workspace, {
    kinds: ({ isReported }) => isReported,
    items: ({ standing }) => standing !== "trusted",
  });

interface TrustFilter {
  readonly kinds?: Parameters<typeof trustOf>[2];
  readonly items: (item: TrustItem) => boolean;
}

async function readFiltered(
  host: Host,
  workspace: string,
  { kinds, items: wanted }: TrustFilter = { items: () => true },
): Promise<TrustState> {
  const trust = await trustOf(ownerOf(host), workspace, kinds);
  const { place, hash, damage, gone, outer } = trust;
  const items = await Promise.all(
    trust.items.filter(wanted).map((item) => shownItem(host, place?.top ?? "", item)),
  );
  const project = place?.top ?? null;
  const shown = { project, hash, damage: damage ?? null, gone, outer, look_alikes: [], items };
  return { trust, shown };
}

async function shownItem(
  host: Host,
  top: string,
  { brought, standing, before, declined }: TrustItem,
): Promise<ShownItem> {
  const { kind } = brought;
  const { what, isReported } = rowOf(kind);
  const about = { kind, what, declined, told: isReported };
  if (!brought.usable)
    return {
      ...about,
      files: [brought.path],
      standing,
      does: [],
      problem: brought.why,
      waits: false,
      diff: [],
    };
  const { effectsOf } = await import("./project-effects.ts");
  const { files } = brought;
  const { does, problem } = await effectsOf(kind, { host, top, files });
  const diff = standing === "changed" ? await diffOf(before, files) : [];
  const waits = standing !== "trusted" && problem === null && does.some(({ loosens }) => loosens);
  return { ...about, files: files.map((file) => file.path), standing, does, problem, waits, diff };
}

/** With more changed lines, a file is shown as replaced. */
const MAX_CHANGED = 2000;
const CONTEXT_LINES = 2;

const linesIn = (files: TrustItem["before"], name: string): readonly string[] =>
  files.filter((file) => file.path === name).flatMap(linesOf);

async function diffOf(before: TrustItem["before"], after: TrustItem["before"]): Promise<readonly string[]> {
  const { lineChanges } = await import("../../sessions/checkpoints/checkpoint-diff.ts");
  const paths = [...new Set([...before, ...after].map((file) => file.path))];
  return paths.flatMap((name) => {
    const sides = { before: linesIn(before, name), after: linesIn(after, name) };
    const changes = lineChanges(sides.before, sides.after, MAX_CHANGED);
    if (changes.length === 0) return [];
    const hunks = hunksOf(changes, sides, CONTEXT_LINES).flatMap(({ from, to, lines }) => [
      `@@ -${from.join(",")} +${to.join(",")} @@`,
      ...lines,
    ]);
    return [`--- ${name} (as it was trusted)`, `+++ ${name}`, ...hunks];
  });
}

/** How things are shown to the person, and how the person is asked. */
export interface TrustAsking {
  readonly show: (item: ShownItem) => void;
  readonly confirm: (question: string) => Promise<boolean>;
}

/** Shows each item to a person and asks; returns whether all are trusted now. Refusals are remembered. */
export async function askForTrust(
  host: Host,
  { trust }: TrustState,
  items: readonly ShownItem[],
  asking: TrustAsking,
): Promise<boolean> {
  const yes = new Set<Kind>();
  for (const item of items) {
    asking.show(item);
    if (await asking.confirm(`Trust ${item.files.join(" and ")}, as it is now?`)) yes.add(item.kind);
  }
  const kinds = new Set(items.map(({ kind }) => kind));
  const shown = trust.items.map(({ brought }) => brought).filter(({ kind }) => kinds.has(kind));
  if (trust.place === undefined || shown.length === 0) return true;
  const owner = ownerOf(host);
  const answers = Object.groupBy(shown, ({ kind }) => (yes.has(kind) ? "yes" : "no"));
  if (answers.yes !== undefined) await recordTrusted(owner, trust.place, answers.yes);
  if (answers.no !== undefined) await recordDeclined(owner, trust.place, answers.no);
  return answers.no === undefined;
}

/** Trusts everything that can be trusted, if it still has the hash that it was shown with. */
export async function trustByHash(host: Host, { trust, shown }: TrustState, hash: string): Promise<void> {
  if (trust.place === undefined || hash !== shown.hash)
    throw new HarnessError(
      EXIT.usage,
      shown.hash === "" ? "there is nothing here to trust" : "what is here has a different hash",
      "harness trust --show",
    );
  const bad = shown.items.find(({ problem }) => problem !== null);
  if (bad !== undefined)
    throw new HarnessError(
      EXIT.usage,
      `${bad.files.join(", ")}: ${bad.problem}`,
      "fix it, then: harness trust --show",
    );
  await recordTrusted(
    ownerOf(host),
    trust.place,
    trust.items.map(({ brought }) => brought),
  );
}

/** Forgets what was trusted and is no longer there, so that it is not reported again. */
export async function forgetGone(host: Host, { trust: { place, gone } }: TrustState): Promise<void> {
  if (place !== undefined && gone.length > 0) await forgetKinds(ownerOf(host), place, gone);
}

/** Says nothing on whether there was any trust to forget: afterwards nothing is trusted. */
export async function revokeTrust(host: Host, { trust: { place } }: TrustState): Promise<void> {
  if (place !== undefined) await forgetTrust(ownerOf(host), place);
}

/** Things of the project that do not count for a run, and why. */
export interface Untrusted {
  readonly text: string;
  readonly items: readonly { readonly kind: Kind; readonly file: string; readonly why: string }[];
}

/** Undefined if nothing of the project is left out. */
export async function untrustedIn(host: Host, workspace: string): Promise<Untrusted | undefined> {
  return untrustedOf((await readUntrusted(host, workspace)).shown);
}

/** For commands without events: one line on stderr. */
export async function noteUntrusted(host: Host, workspace: string, quiet: boolean): Promise<void> {
  const untrusted = await untrustedIn(host, workspace);
  if (untrusted !== undefined) noteTo(quiet)(untrusted.text);
}

export function untrustedOf({ project, items, damage, gone, outer }: ShownTrust): Untrusted | undefined {
  const waiting = items
    .filter(
      ({ told, waits, problem, standing }) => told && (waits || (problem !== null && standing !== "trusted")),
    )
    .map(({ kind, files, standing, problem }) => ({
      kind,
      file: files[0] ?? "",
      why: problem ?? (standing === "changed" ? "it has changed since it was trusted" : "it is not trusted"),
    }));
  const lost = gone.map((kind) => ({ kind, file: rowOf(kind).files[0] ?? "", why: GONE }));
  const each = (rows: typeof waiting): string => rows.map(({ file, why }) => `${file} (${why})`).join(", ");
  const parts = [
    damage ?? "",
    waiting.length === 0
      ? ""
      : `applies only where it tightens: ${each(waiting)}; harness trust shows what it would do`,
    lost.length === 0 ? "" : `no longer applies: ${each(lost)}; harness trust forgets it`,
    outer.length === 0
      ? ""
      : `does not apply, although it is trusted: ${outer.join(", ")} (the project is ${project ?? ""}, which is nearer)`,
  ].filter((part) => part !== "");
  return parts.length === 0 ? undefined : { text: parts.join("; "), items: [...waiting, ...lost] };
}

const GONE = "it was trusted, and is no longer there";

/** For doctor; empty if the project brings nothing. */
export async function trustHealth(host: Host, workspace: string): Promise<readonly Health[]> {
  const { shown } = await readTrust(host, workspace);
  const untrusted = untrustedOf(shown);
  if (untrusted !== undefined)
    return [warningHealth("project", visibleLine(untrusted.text), "harness trust")];
  const trusted = shown.items.filter(({ standing }) => standing === "trusted").flatMap(({ files }) => files);
  return trusted.length === 0 ? [] : [healthy("project", visibleLine(`trusted: ${trusted.join(", ")}`))];
}
