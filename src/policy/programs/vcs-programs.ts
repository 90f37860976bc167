import type { Found, Use, Reader } from "./program-model.ts";
/** `^/trunk`: from the root of the repository on its server. */
const upstream = ({ operands }: Use): readonly Found[] =>
  operands
    .filter(({ value }) => value.startsWith("^/"))
    .map(({ span }) => ({ kind: "network", hosts: [], span }));
/** Another repository by its address; and of some options even a value is looked for wherever it stands. */
const strayed = (use: Use): readonly Found[] => [
  ...[...use.operands, ...[...use.globals, ...use.options].flatMap(({ value }) => value ?? [])]
    .filter(({ value }) => /^[a-z][a-z0-9+.-]*:\/\//i.test(value))
    .map(({ span }): Found => ({ kind: "network", hosts: [], span })),
  ...use.options.flatMap(({ value, span }) =>
    value !== null && value.span !== span && /^-\D/.test(value.value)
      ? [use.doubt("option.unknown", value)]
      : [],
  ),
];
/** What rows ask of this file, by name. */
export const VCS_READERS: Readonly<Record<string, Reader>> = {
  "hg settings": strayed,
  "svn address": upstream,
};
