import type { Arg, Found, Use } from "../model.ts";

/** A program that comes in by stdin. */
export function inputEffects({ input }: Pick<Use, "input">): readonly Found[] {
  const from = input === "network" ? "fetched" : "input";
  const code = { kind: "code", from, path: null } as const;
  if (input === "project") return [{ ...code, followed: true }];
  return [typeof input === "string" || input.rough === true ? code : { ...code, text: input.text }];
}

/** A file of code, or one that a substitution makes. */
export function fileEffects(file: Arg, use: Use): Found {
  const from = file.feed === "network" ? "fetched" : file.feed === undefined ? "project" : "input";
  return { kind: "code", from, path: from === "project" ? use.place(file) : null, span: file.span };
}

/** A program on the command line. */
export const inlineEffects = (text: Arg): Found => ({
  kind: "code",
  from: text.feed === "network" ? "fetched" : "inline",
  path: null,
  text: text.kind === "literal" ? text.value : "",
  span: text.span,
});

/** Several words as the one text that a shell makes of them. */
export function joined([first, ...rest]: readonly [Arg, ...Arg[]]): Arg {
  const all = [first, ...rest];
  const vague = all.find(({ kind }) => kind === "dynamic") ?? all.find(({ kind }) => kind === "glob");
  const feed = all.find((arg) => arg.feed === "network")?.feed ?? all.find((arg) => arg.feed)?.feed;
  return {
    kind: vague?.kind ?? "literal",
    value: all.map(({ value }) => value).join(" "),
    span: [first.span[0], Math.max(...all.map(({ span }) => span[1]))],
    ...(feed === undefined ? {} : { feed }),
  };
}
