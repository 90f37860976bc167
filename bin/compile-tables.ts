/**
 * Compiles the YAML tables beside the code that reads them into modules of plain data, `<table>.generated.ts`. An
 * unknown key, a duplicate row or an invalid pattern is an error that names file and row.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { z } from "zod";
import { CARRIED_PROTOCOLS } from "./carried-protocols-table.ts";
import { POPULAR_NAMES } from "./popular-names-table.ts";
import {
  casesOf,
  type Compiled,
  examples,
  type Exports,
  names,
  pattern,
  type Table,
  table,
  type TableExample,
  words,
} from "./table-form.ts";
import { mistake, splitNames } from "./yaml-table.ts";

const ROOT = path.join(import.meta.dirname, "..");

export interface CompiledTable {
  /** Path from the root. */
  readonly module: string;
  readonly text: string;
  readonly examples: readonly TableExample[];
}

/** Maps a reason to paths or names. */
const reasons = z.record(
  z.string(),
  z.union([
    z.strictObject({ paths: names, examples: examples.optional() }),
    z.strictObject({ names, examples: examples.optional() }),
  ]),
);
const LISTS = "Readonly<Record<string, readonly string[]>>";

/** Each path must be in the table only once, and in lower case, as it is compared. */
function lists(rows: z.infer<typeof reasons>, about: string, file: string): Compiled {
  const seen = new Map<string, string>();
  const all = Object.entries(rows).map(
    ([why, row]) => [why, "paths" in row ? row.paths : row.names, row.examples] as const,
  );
  for (const [why, list] of all)
    for (const each of list) {
      const other = seen.get(each);
      if (other !== undefined) throw mistake(`${file}: ${why}`, `${each} stands in "${other}" as well`);
      if (each !== each.toLowerCase()) throw mistake(`${file}: ${why}`, `${each} is not in small letters`);
      seen.set(each, why);
    }
  return {
    exports: { [about]: [LISTS, Object.fromEntries(all.map(([why, list]) => [why, list]))] },
    examples: all.flatMap(([why, , given]) => casesOf(about, `${file}: ${why}`, why, given)),
  };
}

const both = (...parts: readonly Compiled[]): Compiled => ({
  exports: Object.assign({}, ...parts.map((part) => part.exports)) as Exports,
  examples: parts.flatMap((part) => part.examples),
});

const rooted = names.transform((list) => list.map((each) => `/${each}`));

const SECRET_PATHS = table(
  "src/policy/paths/secret-paths.yaml",
  z.strictObject({ paths: reasons }),
  ({ paths }, file) => lists(paths, "SECRETS", file),
);

const STARTUP_PATHS = table(
  "src/policy/paths/startup-paths.yaml",
  z.strictObject({ home: reasons, system: reasons }),
  ({ home, system }, file) => both(lists(home, "HOME_STARTUP", file), lists(system, "SYSTEM_STARTUP", file)),
);

const SYSTEM_PATHS = table(
  "src/policy/paths/system-paths.yaml",
  z.strictObject({ readable: reasons, "not readable": rooted, temporary: rooted }),
  ({ readable, temporary, ...others }, file) =>
    both(lists(readable, "READABLE", file), {
      exports: {
        NOT_READABLE: ["readonly string[]", others["not readable"]],
        TEMPORARY: ["readonly string[]", temporary],
      },
      examples: [],
    }),
);

const HANDOFF_NAMES = table(
  "src/policy/handoff-names.yaml",
  z.strictObject({ dangerous: reasons, look: reasons }),
  ({ dangerous, look }, file) => both(lists(dangerous, "DANGEROUS", file), lists(look, "LOOK", file)),
);

const ENVIRONMENT = table(
  "src/policy/effects/environment.yaml",
  z.strictObject({
    secret: pattern,
    inert: words,
    "inert unless a path": pattern,
    pagers: words,
    decides: z.strictObject({ names: words, beginnings: words, endings: words, anywhere: words }),
    lists: words,
    "lists of the box": words,
    folders: words,
    releases: words,
    "any value": pattern,
    values: z.record(
      z.string(),
      z.strictObject({ names: pattern, value: pattern, examples: examples.optional() }),
    ),
    words: z.record(
      z.string(),
      z.strictObject({
        names: pattern,
        each: z.union([pattern.transform((one) => [one]), z.array(pattern).min(1)]),
        examples: examples.optional(),
      }),
    ),
  }),
  (form, file) => {
    const {
      secret,
      inert,
      pagers,
      decides,
      lists: listed,
      folders,
      releases,
      values,
      words: optioned,
    } = form;
    const value = {
      secret,
      inert,
      inertUnlessPath: form["inert unless a path"],
      pagers,
      decides,
      lists: listed,
      boxLists: form["lists of the box"],
      folders,
      releases,
      anyValue: form["any value"],
      values: Object.values(values).map((row) => [row.names, [row.value]]),
      words: Object.values(optioned).map((row) => [row.names, row.each]),
    };
    const type = `{
  readonly secret: string; readonly inert: readonly string[]; readonly inertUnlessPath: string; readonly pagers: readonly string[];
  readonly decides: Readonly<Record<"names" | "beginnings" | "endings" | "anywhere", readonly string[]>>;
  readonly lists: readonly string[]; readonly boxLists: readonly string[]; readonly folders: readonly string[];
  readonly releases: readonly string[]; readonly anyValue: string;
  readonly values: readonly (readonly [names: string, forms: readonly string[]])[];
  readonly words: readonly (readonly [names: string, forms: readonly string[]])[];
}`;
    const cases = Object.entries({ ...values, ...optioned }).flatMap(([row, given]) =>
      casesOf("VARIABLES", `${file}: ${row}`, row, given.examples),
    );
    return { exports: { VARIABLES: [type, value] }, examples: cases };
  },
);

const LOCAL_TOOLS = table(
  "src/policy/effects/local-tools.yaml",
  z.strictObject({
    "work on files": z.record(z.string(), words),
    "inline code": pattern,
    "only with": z.record(z.string(), words),
    "run a program": z.strictObject({
      programs: words,
      "options with a value": words,
      refused: pattern,
      told: pattern,
    }),
    "change in place": words,
    "load from folders": words,
    words: z.strictObject({ ulimit: pattern, shopt: pattern }),
    examples,
  }),
  (form, file) => {
    const groups = Object.entries(form["work on files"]);
    const run = form["run a program"];
    const value = {
      local: once(groups, file),
      inline: form["inline code"],
      onlyWith: form["only with"],
      running: run.programs,
      takesNext: run["options with a value"],
      refused: run.refused,
      told: run.told,
      inPlace: form["change in place"],
      foldersOfCode: form["load from folders"],
      words: form.words,
    };
    const type = `{
  readonly local: readonly string[]; readonly inline: string; readonly onlyWith: Readonly<Record<string, readonly string[]>>;
  readonly running: readonly string[]; readonly takesNext: readonly string[]; readonly refused: string; readonly told: string;
  readonly inPlace: readonly string[]; readonly foldersOfCode: readonly string[];
  readonly words: { readonly ulimit: string; readonly shopt: string };
}`;
    return {
      exports: { LOCAL_TOOLS: [type, value] },
      examples: casesOf("LOCAL_TOOLS", file, "", form.examples),
    };
  },
);

/** All words of the groups; a word in two groups is an error. */
function once(groups: readonly (readonly [string, readonly string[]])[], file: string): readonly string[] {
  const seen = new Map<string, string>();
  for (const [group, list] of groups)
    for (const each of list) {
      const other = seen.get(each);
      if (other !== undefined) throw mistake(`${file}: ${group}`, `${each} stands in "${other}" as well`);
      seen.set(each, group);
    }
  return [...seen.keys()];
}

const numberRow = z.strictObject({ words: pattern.optional(), "but not": pattern.optional() });
const nameRow = z.strictObject({
  below: z.enum(["operands", "some operands", "folder"]),
  "options end": pattern.optional(),
  with: pattern.optional(),
  without: pattern.optional(),
});
const filterRow = z.strictObject({
  every: pattern.optional(),
  without: pattern.optional(),
  operands: z.number().int().optional(),
});

/** Gives each name of a key its own row. */
const byName = <Row>(rows: Readonly<Record<string, Row>>, file: string): Readonly<Record<string, Row>> => {
  const all = Object.entries(rows).flatMap(([key, row]) =>
    splitNames(key).map((name) => [name, row] as const),
  );
  const twice = all.find(([name], at) => all.findIndex(([other]) => other === name) !== at);
  if (twice !== undefined) throw mistake(`${file}: ${twice[0]}`, "stands twice");
  return Object.fromEntries(all);
};

const PRINTED = table(
  "src/policy/effects/printed.yaml",
  z.strictObject({
    numbers: z.record(
      names.transform((list) => list.join(", ")),
      numberRow,
    ),
    names: z.record(z.string(), nameRow),
    filters: z.record(z.string(), filterRow),
    "set variables": words,
    "set any variable": words,
    examples: z.strictObject({ numbers: examples, names: examples, filters: examples }),
  }),
  (form, file) => ({
    exports: {
      PRINTS_NUMBERS: [
        'Readonly<Record<string, { readonly words?: string; readonly "but not"?: string }>>',
        byName(form.numbers, file),
      ],
      PRINTS_NAMES: [
        'Readonly<Record<string, { readonly below: "operands" | "some operands" | "folder"; readonly "options end"?: string; readonly with?: string; readonly without?: string }>>',
        byName(form.names, file),
      ],
      FILTERS: [
        "Readonly<Record<string, { readonly every?: string; readonly without?: string; readonly operands?: number }>>",
        byName(form.filters, file),
      ],
      SET_VARIABLES: ["readonly string[]", form["set variables"]],
      SET_ANY_VARIABLE: ["readonly string[]", form["set any variable"]],
    },
    examples: (["numbers", "names", "filters"] as const).flatMap((about) =>
      casesOf(about, `${file}: ${about}`, about, form.examples[about]),
    ),
  }),
);

const fetching = z.strictObject({ programs: words, words });

const REACHING = table(
  "src/policy/reaching.yaml",
  z.strictObject({
    "words of hosts": words,
    "words of clients": words,
    "words of processes": words,
    "words that delete": words,
    hosts: words,
    engines: words,
    openers: words,
    packages: fetching,
    repositories: fetching,
    kept: pattern,
    examples,
  }),
  (form, file) => ({
    exports: {
      REACHING: [
        `{
  readonly hostWords: readonly string[]; readonly clientWords: readonly string[]; readonly processWords: readonly string[];
  readonly deleteWords: readonly string[];
  readonly hosts: readonly string[]; readonly engines: readonly string[]; readonly openers: readonly string[];
  readonly fetching: readonly { readonly programs: readonly string[]; readonly words: readonly string[] }[]; readonly kept: string;
}`,
        {
          hostWords: form["words of hosts"],
          clientWords: form["words of clients"],
          processWords: form["words of processes"],
          deleteWords: form["words that delete"],
          hosts: form.hosts,
          engines: form.engines,
          openers: form.openers,
          fetching: [form.packages, form.repositories],
          kept: form.kept,
        },
      ],
    },
    examples: casesOf("REACHING", file, "", form.examples),
  }),
);

const PROGRAM_WORDS = table(
  "src/policy/program-words.yaml",
  z.strictObject({
    git: z.strictObject({
      "obeyed sections": words,
      obeyed: words,
      "shown sections": words,
      shown: words,
      "harmless values": z.record(z.string(), z.array(z.string()).min(1)),
      examples,
    }),
    ssh: z.strictObject({ runs: words, connection: words }),
    systemctl: z.strictObject({ reports: words, power: words }),
    checks: z.strictObject({ scripts: words, targets: words, programs: words, python: words }),
    packages: z.strictObject({ npm: words, pip: words, cargo: words, go: words, files: words }),
    maven: z.strictObject({ flags: words, values: words, properties: words }),
    python: z.strictObject({ "reaching modules": words }),
    carriers: z.record(z.string(), words),
  }),
  ({ git, python, ...others }, file) => {
    const list = "readonly string[]";
    const type = `{
  readonly git: {
    readonly obeyedSections: ${list}; readonly obeyed: ${list}; readonly shownSections: ${list}; readonly shown: ${list};
    readonly harmlessValues: Readonly<Record<string, ${list}>>;
  };
  readonly ssh: { readonly runs: ${list}; readonly connection: ${list} }; readonly systemctl: { readonly reports: ${list}; readonly power: ${list} };
  readonly checks: Readonly<Record<"scripts" | "targets" | "programs" | "python", ${list}>>;
  readonly packages: Readonly<Record<"npm" | "pip" | "cargo" | "go" | "files", ${list}>>;
  readonly maven: { readonly flags: ${list}; readonly values: ${list}; readonly properties: ${list} }; readonly python: { readonly reachingModules: ${list} };
  readonly carriers: Readonly<Record<"here" | "elsewhere" | "runners" | "elsewhere as words" | "text options" | "starting options" | "prose", ${list}>>;
}`;
    const settings = {
      obeyedSections: git["obeyed sections"],
      obeyed: git.obeyed,
      shownSections: git["shown sections"],
      shown: git.shown,
      harmlessValues: git["harmless values"],
    };
    const value = { ...others, git: settings, python: { reachingModules: python["reaching modules"] } };
    return {
      exports: { PROGRAM_WORDS: [type, value] },
      examples: casesOf("PROGRAM_WORDS", `${file}: git`, "git", git.examples),
    };
  },
);

const family = z.string().regex(/^\d+K?(?: tools)?(?: thinking)?$/, "not a context, `tools`, `thinking`");

function familyOf(prefix: string, text: string): object {
  const [context = "", ...marks] = text.split(" ");
  const tokens = Number.parseInt(context, 10) * (context.endsWith("K") ? 1024 : 1);
  return {
    prefix,
    context: tokens,
    tools: marks.includes("tools"),
    thinking: marks.includes("thinking"),
    cache: true,
  };
}

const FAMILIES = table(
  "src/models/model-families.yaml",
  z.strictObject({ families: z.record(z.string(), family), examples: z.record(z.string(), z.string()) }),
  ({ families, examples: given }, file) => ({
    exports: {
      FAMILIES: [
        "readonly { readonly prefix: string; readonly context: number; readonly tools: boolean; readonly thinking: boolean; readonly cache: boolean }[]",
        Object.entries(families).map(([prefix, text]) => familyOf(prefix, text)),
      ],
    },
    examples: Object.entries(given).map(([name, row]) => {
      const where = `${file}: ${row}`;
      if (row !== "none" && !Object.hasOwn(families, row)) throw mistake(where, "no family is called so");
      return { where, about: "FAMILIES", row, given: name, holds: true };
    }),
  }),
);

const TABLES: readonly Table[] = [
  SECRET_PATHS,
  STARTUP_PATHS,
  SYSTEM_PATHS,
  HANDOFF_NAMES,
  ENVIRONMENT,
  LOCAL_TOOLS,
  PRINTED,
  REACHING,
  CARRIED_PROTOCOLS,
  PROGRAM_WORDS,
  FAMILIES,
  POPULAR_NAMES,
];

/** All table files, by path from the root. */
export const tableFiles = (): ReadonlyMap<string, string> =>
  new Map(TABLES.map(({ file }) => [file, readFileSync(path.join(ROOT, file), "utf8")]));

export const compileTables = (files = tableFiles()): readonly CompiledTable[] =>
  TABLES.map(({ file, compile }) => {
    const { exports, examples: cases } = compile(files.get(file) ?? "", path.basename(file));
    const lines = Object.entries(exports).map(
      ([name, [type, value]]) => `export const ${name}: ${type} = ${JSON.stringify(value)};\n`,
    );
    return {
      module: file.replace(/\.yaml$/, ".generated.ts"),
      text: `// Made by bin/programs.ts of ${path.basename(file)}.\n${lines.join("")}`,
      examples: cases,
    };
  });
