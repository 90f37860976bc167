import type { Looked } from "../decide.ts";
import { type Called, isAside } from "../effects/called.ts";
import type { Effect } from "../effects/effect.ts";
import { rulingOf } from "../judge/effects.ts";
import type { Places } from "../judge/files.ts";
import { below, isInside } from "../paths/normal.ts";
import { shellText } from "../shell/quote.ts";
import { isNeverAllowed, pathOf } from "./effect-names.ts";
import type { RuleForm } from "./form.ts";

export type DraftRule = Pick<RuleForm, "prefix" | "exact" | "effect" | "path">;

/** A rule to be, and what may show what it is for. */
export interface Draft {
  /** By its words alone, then with its paths, then with its paths from `~` or `/`: as far as there are any. */
  readonly rules: readonly [DraftRule, ...DraftRule[]];
  readonly example: string;
}

/** A rule for each thing that is asked about, or why there is none. */
export function draftsFor(
  text: string,
  { calls, effects }: Looked,
  places: Places,
): readonly Draft[] | string {
  const drafts = new Map<string, Draft>();
  const asked = new Map<Called, Effect[]>();
  for (const effect of effects) {
    const { verdict, reason, id } = rulingOf(effect, places);
    if (verdict !== "ask") continue;
    if (isNever(effect)) return `no rule can allow it: ${reason} (${id})`;
    const called = calls[effect.call];
    if (called === undefined || isAside(called, effect.span)) {
      const draft = redirectDraft(effect, places);
      if (draft === undefined) return `a rule would hold for every command: ${reason} (${id})`;
      drafts.set(draft.example, draft);
    } else asked.set(called, [...(asked.get(called) ?? []), effect]);
  }
  for (const [called, own] of asked) {
    const draft = commandDraft(called, own, { text, places });
    if (typeof draft === "string") return draft;
    drafts.set(draft.example, draft);
  }
  return [...drafts.values()];
}

const isNever = (effect: Effect): boolean =>
  isNeverAllowed(effect.kind === "unknown" ? effect.doubt : effect.kind) ||
  (effect.kind === "code" && isNeverAllowed(`code.${effect.from}`));

/** `> file` is the shell's own deed: a rule for it names the file and no command, so only one of the workspace will do. */
function redirectDraft(effect: Effect, places: Places): Draft | undefined {
  const at = pathOf(effect);
  if (effect.kind !== "write" || at === null || places.facts(at, "write").kind !== "workspace")
    return undefined;
  const [path] = pathTexts([at], { ...places, relative: true });
  if (path === undefined) return undefined;
  return { rules: [{ effect: "write", path }], example: `echo > ${shellText([path])}` };
}

function commandDraft(
  { words }: Called,
  asked: readonly Effect[],
  { text, places }: { readonly text: string; readonly places: Places },
): Draft | string {
  const vague = words.find(({ kind }) => kind !== "literal");
  if (vague !== undefined)
    return `only the shell will know what ${text.slice(...vague.span)} stands for: write it out`;
  const prefix = words.map(({ value }) => value);
  const rule = { prefix, exact: true } as const;
  const paths = asked.flatMap((effect) => (isInline(effect) ? [] : (pathOf(effect) ?? [])));
  const named = [true, false].map((relative) => pathTexts(paths, { ...places, relative }));
  const withPaths = named.filter((path) => path.length > 0).map((path) => ({ ...rule, path }));
  return { rules: [rule, ...withPaths], example: shellText(prefix) };
}

const isInline = (effect: Effect): boolean => effect.kind === "code" && effect.from === "inline";

interface Naming {
  readonly workspace: string;
  readonly home: string;
  /** Those in the workspace from there. */
  readonly relative: boolean;
}

/** Paths as a rule names them, but for those that would be patterns. */
const pathTexts = (paths: readonly string[], { workspace, home, relative }: Naming): string[] =>
  [...new Set(paths)]
    .filter((path) => !/[*?[\]\\]/.test(path))
    .map((path) => {
      if (relative && isInside(workspace, path)) return below(workspace, path) || ".";
      return isInside(home, path) ? `~/${below(home, path)}`.replace(/\/$/, "") : path;
    });
