/** Code that an earlier command of the same text downloaded, however it gets from there to the program that runs it. */
import type { Walk } from "./call-effects.ts";
import type { Effect } from "./effect.ts";

type Code = Extract<Effect, { readonly kind: "code" }>;

/** They write the members of what they are given below a folder, under names that are not known. */
const UNPACKERS: ReadonlySet<string> = new Set(["tar", "bsdtar", "cpio", "pax"]);

const SHELL = /^(?:ba|da|a|z|k)?sh$/;

/** Which commands of the walk were given what. */
type Given = Pick<Walk, "fed" | "open">;

/** Turns code that was downloaded into fetched code. */
export function withFetched(effects: readonly Effect[], { fed, open }: Given): readonly Effect[] {
  if (!effects.some(({ kind }) => kind === "network")) return effects;
  const files = downloads(effects, fed);
  const reaches = effects.some(reachesOut);
  const reads = effects.some(({ kind, ...rest }) => kind === "read" && isIn(files, rest));
  const isFetched = (code: Code): boolean =>
    isIn(files, code) ||
    (isUntold(code) && ((reaches && open.has(code.call)) || (reads && SHELL.test(code.by))));
  return effects.map((effect) => {
    if (effect.kind === "code") return isFetched(effect) ? { ...effect, from: "fetched" } : effect;
    if (effect.kind !== "unknown" || effect.doubt !== "command.elsewhere" || !files.has(effect.what))
      return effect;
    const { span, by, call, what: path } = effect;
    return { kind: "code", from: "fetched", path, span, by, call };
  });
}

/** Files that a command downloads, or that one writes that is given a download. */
function downloads(effects: readonly Effect[], fed: ReadonlySet<number>): ReadonlySet<string> {
  const online = new Set(effects.filter(({ kind }) => kind === "network").map(({ call }) => call));
  return new Set(
    effects.flatMap((effect) =>
      effect.kind === "write" &&
      effect.path !== null &&
      (online.has(effect.call) || (fed.has(effect.call) && !UNPACKERS.has(effect.by)))
        ? [effect.path]
        : [],
    ),
  );
}

const isIn = (files: ReadonlySet<string>, effect: object): boolean =>
  "path" in effect && typeof effect.path === "string" && files.has(effect.path);

/** Other machines, not the box's own servers. */
const reachesOut = (effect: Effect): boolean =>
  effect.kind === "network" &&
  effect.inside !== true &&
  !(effect.hosts.length > 0 && effect.hosts.every((host) => OWN.test(host)));

const OWN = /^(?:localhost|127\.[\d.]+|0\.0\.0\.0|\[::1\])$/;

/** A program from stdin of which nothing is known. Texts of shells have their own origin. */
const isUntold = ({ from, text, guess, followed, by }: Code): boolean =>
  from === "input" && text === undefined && guess === undefined && followed !== true && by !== "shell";
