/** The schema of program rows and files; keys shared by several rows are expanded here. */
import { z } from "zod";
import { EFFECT_WORDS, groupMeaning } from "../src/policy/programs/read-arguments.ts";
import { ROLES } from "../src/policy/programs/program-model.ts";
import { WIDE_EFFECTS } from "../src/policy/programs/program-readers.ts";
import { readTable } from "./yaml-table.ts";

const words = z.string().regex(/^\S+(?: \S+)*$/, "words, with one blank between them");
const names = z.string().regex(/^\S[^,]*(?:, \S[^,]*)*$/, "names, with a comma and a blank between them");
const isKey = (table: object) => (word: string) => Object.hasOwn(table, word);
const effect = z.string().refine(isKey(EFFECT_WORDS), { error: "no effect that is known" });
const anyEffect = z.string().refine((word) => isKey(EFFECT_WORDS)(word) || isKey(WIDE_EFFECTS)(word), {
  error: "no effect that is known",
});
const listOf = <Item extends z.ZodType<string>>(item: Item) =>
  z.union([item.transform((one): readonly string[] => [one]), z.array(item).min(1)]);
export const group = z
  .string()
  .refine((word) => groupMeaning(word) !== null, { error: "no group of options" });
const roles = words.refine(
  (text) => text.split(" ").every((word) => (ROLES as readonly string[]).includes(word)),
  {
    error: "no roles of arguments",
  },
);
const check = z.union([
  z.string(),
  z
    .record(z.string(), z.union([z.string(), z.array(z.string()), z.record(z.string(), z.string())]))
    .refine((table) => Object.keys(table).length === 1, { error: "one check, and what it is given" }),
]);
const SYNTAX = ["gnu", "abbreviates", "complete", "single dash", "options first"] as const;
const optionGroups = z.union([
  z.object({ "option sets": names.optional(), numbers: z.literal(true).optional() }).catchall(words),
]);
const commandLines = z.array(z.string().min(1)).min(1);
const examples = z.strictObject({
  allow: commandLines.optional(),
  ask: commandLines.optional(),
  deny: commandLines.optional(),
});

const argumentRoles = z.strictObject({
  first: roles.optional(),
  rest: roles.optional(),
  last: roles.optional(),
  none: z.literal("the current folder").optional(),
});
/** Cancels a key that the other rows share. */
const nothing = z.literal("nothing");
const noList = nothing.transform((): never[] => []);

/** Keys that one row may set for several rows. */
const sharable = {
  "tells of itself": words.optional(),
  syntax: z.union([noList, listOf(z.enum(SYNTAX))]).optional(),
  options: optionGroups.optional(),
  arguments: z
    .union([nothing.transform((): z.infer<typeof argumentRoles> => ({})), argumentRoles])
    .optional(),
  does: z.union([noList, listOf(effect)]).optional(),
  also: z
    .union([noList, z.string().transform((one): z.infer<typeof check>[] => [one]), z.array(check).min(1)])
    .optional(),
};
const shared = z.strictObject(sharable);
type Shared = z.infer<typeof shared>;

const rowShape = z.strictObject({
  "tells of itself": sharable["tells of itself"],
  syntax: sharable.syntax,
  options: sharable.options,
  arguments: sharable.arguments,
  does: sharable.does,
  also: sharable.also,
  like: z.string().optional(),
  "only prints": z.literal(true).optional(),
  "every use": listOf(anyEffect).optional(),
  "only with": z.strictObject({ harmless: z.string(), otherwise: effect }).optional(),
  reader: z.string().optional(),
  "every subcommand": shared.optional(),
  "runs others": z.literal(true).optional(),
  "runs what follows": z.literal(true).optional(),
  "runs programs": words.optional(),
  get subcommands() {
    return z.record(names, rowShape).optional();
  },
  get "subcommands of a repository"() {
    return z.record(names, rowShape).optional();
  },
  get "other subcommand"() {
    return rowShape.optional();
  },
  "other names": z.record(z.string(), z.string()).optional(),
  examples: examples.optional(),
});
export type Row = z.infer<typeof rowShape>;

const familyShape = z.strictObject({
  "every program": z
    .strictObject({
      ...sharable,
      "telling obeys settings": z.literal(true).optional(),
      first: z.string().optional(),
      "runs others": z.literal(true).optional(),
      "runs what follows": z.literal(true).optional(),
    })
    .optional(),
  "option sets": z.record(z.string(), optionGroups).optional(),
  programs: z.record(names, rowShape),
});
export type Family = z.infer<typeof familyShape>;

const SHARED_KEYS = Object.keys(sharable) as readonly (keyof Shared)[];
/** Rows with one of these keys share nothing: they copy another row, or define how everything is read. */
const ALONE = [
  "like",
  "reader",
  "only prints",
  "every use",
  "only with",
  "subcommands",
  "subcommands of a repository",
  "runs programs",
] as const satisfies readonly (keyof Row)[];

export const readFamily = (text: string, file: string): Family =>
  withShared(readTable(text, file, familyShape));

/** Expands `every program` and `every subcommand` in the rows to which they apply. */
function withShared(family: Family): Family {
  const every = family["every program"];
  return { ...family, programs: rowsWith(family.programs, every) };
}

const rowsWith = (rows: Readonly<Record<string, Row>>, every: Shared | undefined): Record<string, Row> =>
  Object.fromEntries(Object.entries(rows).map(([name, row]) => [name, rowWith(innerShared(row), every)]));

function innerShared(row: Row): Row {
  const every = row["every subcommand"];
  const { subcommands, "subcommands of a repository": ofRepository, "other subcommand": other } = row;
  return {
    ...row,
    ...(subcommands === undefined ? {} : { subcommands: rowsWith(subcommands, every) }),
    ...(ofRepository === undefined ? {} : { "subcommands of a repository": rowsWith(ofRepository, every) }),
    ...(other === undefined ? {} : { "other subcommand": innerShared(other) }),
  };
}

/** A row's options are added to the shared ones; its other keys replace the shared ones. */
function rowWith(row: Row, every: Shared | undefined): Row {
  if (every === undefined || ALONE.some((key) => row[key] !== undefined)) return row;
  const own = SHARED_KEYS.filter((key) => row[key] === undefined && every[key] !== undefined);
  const options = joined(every.options, row.options);
  return {
    ...row,
    ...Object.fromEntries(own.map((key) => [key, every[key]])),
    ...(options === undefined ? {} : { options }),
  };
}

function joined(all: Row["options"], own: Row["options"]): Row["options"] {
  if (all === undefined || own === undefined) return own ?? all;
  const texts = Object.entries(own).map(([group, text]) => {
    const before = all[group];
    const between = group === "option sets" ? ", " : " ";
    return [group, typeof before === "string" ? `${before}${between}${String(text)}` : text];
  });
  return { ...all, ...(Object.fromEntries(texts) as typeof own) };
}
