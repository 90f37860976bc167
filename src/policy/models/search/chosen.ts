import type { Found, Use } from "../model.ts";

/** What a search is narrowed to by name (`-g`, a type of its own) is read, wherever it lies: as from where it runs. */
export const chosenEffects = (use: Use, names: ReadonlySet<string>): readonly Found[] =>
  use.options.flatMap(({ name, value }) => {
    if (value === null || !names.has(name) || value.value.startsWith("!")) return [];
    const pattern = value.value.replace(/^(?:\w+:)?\/*/, "");
    return [{ kind: "read", path: use.place({ ...value, value: pattern }), span: value.span }];
  });
