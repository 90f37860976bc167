import type { Place } from "../effects/effect.ts";
import type { Arg, Found, GivenOption, Use } from "./model.ts";

/** What a use needs from where it happens; the walk over the tree supplies it. */
export interface Surroundings {
  readonly input: Use["input"];
  readonly folder: Place;
  readonly home: string;
  place(arg: Arg, from: Place): Place;
  command(
    words: readonly Arg[],
    at: { readonly folder: Place; readonly input: Use["input"] },
  ): readonly Found[];
  tame(name: string, value: string | null, folder: Place): boolean;
  shell(text: Arg, at: { readonly folder: Place; readonly input: Use["input"] }): readonly Found[];
}

/** A program's name and what stands behind it. */
export interface Call {
  readonly program: string;
  readonly name: Arg;
  readonly args: readonly Arg[];
  readonly globals: readonly GivenOption[];
}

export interface Understood {
  readonly options: readonly GivenOption[];
  readonly operands: readonly Arg[];
}

export function makeUse(call: Call, { options, operands }: Understood, around: Surroundings): Use {
  const { folder, home, input } = around;
  return {
    ...call,
    options,
    operands,
    input,
    folder,
    home,
    span: [call.name.span[0], Math.max(call.args.at(-1)?.span[1] ?? 0, call.name.span[1])],
    place: (arg) => around.place(arg, folder),
    command: (words, at) =>
      around.command(words, {
        folder: at?.folder === undefined ? folder : at.folder,
        input: at?.input ?? input,
      }),
    tame: (name, value) => around.tame(name, value, folder),
    shell: (text) => around.shell(text, { folder, input }),
    doubt: (doubt, arg, what = arg.value): Found => ({ kind: "unknown", doubt, what, span: arg.span }),
  };
}
