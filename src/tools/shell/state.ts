import type { Desk, ShellState } from "../desk.ts";
import { END } from "./wrapper.ts";

/** Bytes that a shell may leave, the box's own variables among them. */
export const MOST = 64 * 1024;
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** What bash sets by itself, or reads before the first command and so before anything was judged. */
const OWN = /^(?:PWD|OLDPWD|SHLVL|_|SHELLOPTS|BASHOPTS|BASH|BASH_.*|__h_.*)$/;

export type State = Pick<ShellState, "folder" | "env">;

/** Variables by their names. */
export type Exported = ReadonlyMap<string, string>;

/** What the shell of one call left; undefined when it was another call's; or why it cannot be read. */
export function leftIn(
  content: Uint8Array,
  token: string,
): { readonly folder: string; readonly exported: Exported } | string | undefined {
  const text = decoded(content);
  if (text === undefined) return "it is no UTF-8";
  const fields = text.split("\0");
  if (fields.at(-1) !== "" || fields.at(-2) !== END || fields.length < 4) return "it was not written whole";
  const [first, folder = "", ...variables] = fields.slice(0, -2);
  if (first !== token) return undefined;
  return isPlace(folder) ? { folder, exported: exportedIn(variables) } : "its folder is no path";
}

/** Of `NAME=value` each; the others, and what is bash's own, are left out. */
export function exportedIn(variables: readonly string[]): Exported {
  const pairs = variables.map((text) => {
    const at = text.indexOf("=");
    return [text.slice(0, Math.max(at, 0)), text.slice(at + 1)] as const;
  });
  return new Map(pairs.filter(([name]) => IDENTIFIER.test(name) && !OWN.test(name)));
}

/**
 * What is exported over the box's own variables, without what may not be kept. One of the box's own that is unset or
 * no longer exported is there again in the next call.
 */
export async function envOver(
  own: Exported,
  exported: Exported,
  { shell, keeps }: Pick<Desk, "shell" | "keeps">,
): Promise<{ readonly env: State["env"]; readonly refused: readonly string[] }> {
  const before = new Map(Object.entries(shell.env));
  const kept: (readonly [string, string])[] = [];
  const refused: string[] = [];
  for (const [name, value] of exported) {
    if (own.get(name) === value) continue;
    if (before.get(name) === value || ((await keeps?.(name, value)) ?? true)) kept.push([name, value]);
    else refused.push(name);
  }
  return { env: Object.fromEntries(kept), refused };
}

/** As `pwd -P` writes one. */
const isPlace = (folder: string): boolean =>
  folder.startsWith("/") &&
  folder.length <= 4096 &&
  !folder.includes("//") &&
  !/(?:^|\/)\.\.?(?:\/|$)/.test(folder);

export function decoded(content: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    return undefined;
  }
}
