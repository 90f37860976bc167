import type { Arg, Found, Use } from "../model.ts";

/** An interpreter with a file, or with none: then it runs what it gets on stdin. */
export function programEffects(file: Arg | undefined, use: Use): readonly Found[] {
  if (file === undefined || file.value === "-") return stdinEffects(use);
  if (file.feed === "network") return [{ kind: "code", from: "fetched", path: null, span: file.span }];
  return [
    { kind: "read", path: use.place(file), span: file.span },
    { kind: "code", from: "project", path: use.place(file), span: file.span },
  ];
}

/** A program that comes in by stdin, in a language that is no shell's. */
export function stdinEffects({ input }: Use): readonly Found[] {
  if (input === "network") return [{ kind: "code", from: "fetched", path: null }];
  if (typeof input === "string") return [{ kind: "code", from: "input", path: null }];
  return [{ kind: "code", from: "inline", path: null, text: input.text, span: input.span }];
}
