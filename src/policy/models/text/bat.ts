import type { Found, Use } from "../model.ts";

/** It may start a pager, and its first word may be a command that changes its own files. */
export function batEffects(use: Use): readonly Found[] {
  const [first] = use.operands;
  const paging = use.options.filter(
    ({ name, value }) => name === "--paging" && value?.value !== "never" && value?.value !== "auto",
  );
  return [
    ...paging.map(({ value }) =>
      use.doubt("option.unknown", value ?? first ?? { ...NOWHERE, span: use.span }),
    ),
    ...(first?.value === "cache" ? [use.doubt("operand.unknown", first)] : []),
  ];
}

const NOWHERE = { kind: "literal", value: "--paging" } as const;
