/** Lock files of all forms, read into the same entries. */
import type { Fields } from "../core/raw-data.ts";
import { isKnownAddress } from "./known-names.ts";
import {
  fieldAt,
  fieldsOf,
  type LockEntry,
  type LockForm,
  lockFormNamed,
  MAX_ENTRIES,
  MAX_LOCK,
  OF_GO_MOD,
  textsIn,
  tomlOf,
} from "./manifests.ts";
import type { LookedAtFile } from "./look/looked-at.ts";

type Read = (text: string, from: string) => readonly LockEntry[];

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const named = (value: unknown): readonly (readonly [string, Fields])[] =>
  Object.entries(fieldsOf(value) ?? {}).flatMap(([name, each]) => {
    const fields = typeof each === "string" ? undefined : fieldsOf(each);
    return fields === undefined ? [] : [[name, fields] as const];
  });
const objectsIn = (value: unknown): readonly Fields[] =>
  Array.isArray(value)
    ? value.flatMap((each: unknown) => (typeof each === "string" ? [] : [fieldsOf(each) ?? {}]))
    : [];

/** `package-lock.json` of all three forms, and npm-shrinkwrap. */
const npmLock: Read = (content, from) => {
  const fields = fieldsOf(content, MAX_LOCK);
  const packages = named(fields?.["packages"]).filter(([key]) => key !== "" && key.includes("node_modules/"));
  if (packages.length > 0)
    return packages
      .filter(([, each]) => each["link"] !== true && each["inBundle"] !== true)
      .map(([key, each]) => {
        const name = key.slice(key.lastIndexOf("node_modules/") + "node_modules/".length);
        return npmEntry({ name, each, from });
      });
  const all: LockEntry[] = [];
  const down = (value: unknown, depth: number): void => {
    for (const [name, each] of named(value)) {
      if (each["bundled"] !== true && all.length < MAX_ENTRIES) all.push(npmEntry({ name, each, from }));
      if (depth < 50) down(each["dependencies"], depth + 1);
    }
  };
  down(fields?.["dependencies"], 0);
  return all;
};

function npmEntry({
  name,
  each,
  from,
}: {
  readonly name: string;
  readonly each: Fields;
  readonly from: string;
}): LockEntry {
  const version = text(each["version"]);
  const alias = /^npm:(@?[^@]+)@(.*)$/.exec(version);
  const real = alias?.[1] ?? (text(each["name"]) || undefined);
  const address = /^(?:https?|git|git\+\w+|ssh|file|github):/.test(version) ? version : "";
  return {
    ecosystem: "npm",
    name,
    ...(real === undefined || real === name ? {} : { real }),
    version: alias?.[2] ?? version,
    resolved: text(each["resolved"]) || address,
    integrity: text(each["integrity"]),
    ...(each["hasInstallScript"] === true ? RUNS : {}),
    from,
  };
}

const RUNS = { runs: true } as const;

interface Block {
  readonly head: string;
  /** Lines `key value` or `key: value` of the block. */
  readonly fields: ReadonlyMap<string, string>;
  readonly lines: readonly string[];
  readonly line: number;
}

/** Lines at one depth, each with the deeper lines below it; bounded. */
function* blocksIn(content: string, depth: number): Generator<Block> {
  const lines = content.split("\n");
  const deeper = new RegExp(`^ {${depth + 1}}`);
  for (let at = 0, count = 0; at < lines.length && count < MAX_ENTRIES;) {
    const start = at;
    const head = lines[at] ?? "";
    for (at += 1; at < lines.length && deeper.test(lines[at] ?? ""); at += 1);
    if (!head.endsWith(":") || head.startsWith("#")) continue;
    count += 1;
    const below = lines.slice(start + 1, at);
    const pairs = below.map((line) => /^ +"?([\w-]+)"?:? +"?([^"]*)"?$/.exec(line));
    const fields = new Map(
      pairs.flatMap((pair) => (pair === null ? [] : [[pair[1] ?? "", pair[2] ?? ""] as const])).toReversed(),
    );
    yield { head, fields, lines: below, line: start + 1 };
  }
}

/** Both forms of `yarn.lock` have blocks of the same shape. */
const yarnLock: Read = (content, from) =>
  [...blocksIn(content, 0)].flatMap((block) => yarnEntry(block, from));

const ELSEWHERE = /^(?:https?|git|ssh|[\w.-]+@)\S*:/;
const LOCAL = /^(?:workspace|link|portal|patch|file):/;

const RANGE = /^"?(@?[^@\s",]+)@(.*?)"?:$/;
const RESOLUTION = /^(@?[^@]+)@(?:npm:|virtual:[^#]*#npm:)?(.*)$/;

/** The text of one group, or none. */
const part = (pattern: RegExp, from: string, group: number): string => pattern.exec(from)?.[group] ?? "";

function yarnEntry({ head, fields, line }: Block, from: string): readonly LockEntry[] {
  const of = (key: string): string => fields.get(key) ?? "";
  const [name, range] = [part(RANGE, head, 1), part(RANGE, head, 2)];
  const place = part(RESOLUTION, of("resolution"), 2);
  if (name === "" || LOCAL.test(place || range)) return [];
  const real = part(/^npm:(@?[^@\d][^@]*)@/, range, 1) || part(RESOLUTION, of("resolution"), 1) || name;
  const resolved = of("resolved") || (ELSEWHERE.test(place) ? place : "");
  return [
    {
      ecosystem: "npm",
      name,
      ...(real === name ? {} : { real }),
      version: of("version"),
      resolved,
      integrity: of("integrity") || of("checksum") || part(/^(?!git)[^#]*\.tgz#([0-9a-f]{40})$/, resolved, 1),
      from,
      line,
    },
  ];
}

const pnpmLock: Read = (content, from) => {
  const start = content.search(/^packages:[ \t]*$/m);
  if (start === -1) return [];
  const rest = content.slice(content.indexOf("\n", start) + 1);
  const end = rest.search(/^\S/m);
  const offset = content.slice(0, content.length - rest.length).split("\n").length - 1;
  return [...blocksIn(end === -1 ? rest : rest.slice(0, end), 2)].flatMap((block) =>
    pnpmEntry(block, from, offset),
  );
};

function pnpmEntry({ head, lines, line }: Block, from: string, offset: number): readonly LockEntry[] {
  const key =
    /^ {2}'?\/?(@?[^@'(\s]+?)[@/](\d[^'(:]*|https?:[^']*|file:[^']*|git[^']*?)(?:\([^']*\))?'?:$/.exec(head);
  if (key === null) return [];
  const [, name = "", version = ""] = key;
  const resolution = lines
    .filter((each) => /^ {4}(?:resolution:| {2}(?:integrity|tarball|repo|commit):)/.test(each))
    .join(" ");
  const address = /(?:tarball|repo):\s*'?([^\s,}']+)/.exec(resolution)?.[1];
  return [
    {
      ecosystem: "npm",
      name,
      version,
      resolved: address ?? (/^(?:https?|git|file)/.test(version) ? version : ""),
      integrity: /integrity:\s*([^\s,}]+)/.exec(resolution)?.[1] ?? "",
      ...(lines.some((each) => /^ {4}requiresBuild: true\s*$/.test(each)) ? RUNS : {}),
      from,
      line: line + offset,
    },
  ];
}

const bunLock: Read = (content, from) =>
  Object.entries(fieldsOf(fieldsOf(content, MAX_LOCK)?.["packages"]) ?? {}).flatMap(([key, value]) => {
    if (!Array.isArray(value)) return [];
    const [id, registry] = value as readonly unknown[];
    const [, real = "", version = ""] = /^(@?[^@]+)@(.*)$/.exec(text(id)) ?? [];
    if (/^(?:workspace|link|file):/.test(version)) return [];
    const name = key.slice(
      key.lastIndexOf("/", key.lastIndexOf("/@") === -1 ? undefined : key.lastIndexOf("/@")) + 1,
    );
    const own = key.startsWith("@") && !key.slice(1).includes("/", key.indexOf("/")) ? key : name;
    const integrity = value.map(text).find((each) => /^sha\d+-/.test(each)) ?? "";
    const alias = real === own || key.endsWith(real) ? {} : { real };
    return [
      {
        ecosystem: "npm",
        name: key.endsWith(real) ? real : own,
        ...alias,
        version,
        resolved: text(registry),
        integrity,
        from,
      } satisfies LockEntry,
    ];
  });

/** Cargo, poetry and uv write the same tables. */
const tomlLock =
  (ecosystem: "cargo" | "pip"): Read =>
  (content, from) =>
    objectsIn(tomlOf(content, MAX_LOCK)?.["package"]).flatMap((each) => {
      const source = each["source"];
      const kept =
        typeof source === "string"
          ? source
          : textsIn(["registry", "url", "git"].map((key) => fieldAt(fieldsOf(source), key))).join("");
      const local =
        fieldAt(fieldsOf(source), "editable") ??
        fieldAt(fieldsOf(source), "virtual") ??
        fieldAt(fieldsOf(source), "directory");
      if (local !== undefined || (ecosystem === "cargo" && kept === "")) return [];
      const hashes = [
        ...textsIn(each["checksum"]),
        ...[
          ...objectsIn(each["files"]),
          ...objectsIn(each["wheels"]),
          ...objectsIn([each["sdist"]].filter((one) => one !== undefined)),
        ].map((one) => text(one["hash"])),
      ];
      return [
        {
          ecosystem,
          name: text(each["name"]),
          version: text(each["version"]),
          resolved:
            /^registry\+https:\/\/github\.com\/rust-lang\/[\w.]+-index$/.test(kept) ||
            (/\/simple\/?$/.test(kept) && isKnownAddress(kept, "pip"))
              ? ""
              : kept.replace(/^(?:registry|sparse)\+/, "") + commitIn(fieldsOf(source)),
          integrity: hashes
            .filter((hash) => hash !== "")
            .toSorted()
            .join(" "),
          from,
        } satisfies LockEntry,
      ];
    });

/** The commit of a branch or tag, if it is no part of the address. */
function commitIn(source: Fields | undefined): string {
  const commit = text(source?.["resolved_reference"]) || text(source?.["ref"]);
  return commit === "" ? "" : `#${commit}`;
}

/**
 * A module has two sums: one of all its files, and one of its `go.mod` alone, which is there also if the module is not
 * fetched.
 */
const goSum: Read = (content, from) => {
  const sums = new Map<string, { readonly name: string; readonly version: string; readonly all: string[] }>();
  for (const [, name = "", version = "", own, sum = ""] of content.matchAll(
    /^(\S+) (v[^\s/]+)(\/go\.mod)? (h1:\S+)\s*$/gm,
  )) {
    const key = `${name} ${version}`;
    const all = sums.get(key)?.all ?? [];
    all.push(own === undefined ? sum : `${OF_GO_MOD}${sum}`);
    sums.set(key, { name, version, all });
  }
  return [...sums.values()].map(({ name, version, all }) => ({
    ecosystem: "go",
    name,
    version,
    resolved: "",
    integrity: all.toSorted().toReversed().join(" "),
    from,
  }));
};

/** `group:name:version=configurations`. */
const gradleLock: Read = (content, from) =>
  Array.from(
    content.matchAll(/^([\w.-]+:[\w.-]+):([^\s:=]+)=/gm),
    ([, name = "", version = ""]) =>
      ({ ecosystem: "maven", name, version, resolved: "", integrity: "", from }) satisfies LockEntry,
  );

const requirements: Read = (content, from) =>
  content
    .replaceAll("\\\n", " ")
    .split("\n")
    .flatMap((line) => {
      const match =
        /^\s*([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*(?:(?:===?|~=|>=|<=|>|<|!=)\s*([^\s;,#]+)[^#@]*?)?(?:@\s*(\S+))?\s*(?:;[^#]*?)?(?=$|\s--hash|#)(.*)$/.exec(
          line,
        );
      if (match === null) return [];
      const [, name = "", version = "", resolved = "", rest = ""] = match;
      const integrity = Array.from(rest.matchAll(/--hash=(\S+)/g), ([, hash = ""]) => hash)
        .toSorted()
        .join(" ");
      return [{ ecosystem: "pip", name, version, resolved, integrity, from } satisfies LockEntry];
    });

const pipfileLock: Read = (content, from) =>
  ["default", "develop"].flatMap((group) =>
    named(fieldsOf(content, MAX_LOCK)?.[group]).map(([name, each]) => ({
      ecosystem: "pip" as const,
      name,
      version: text(each["version"]).replace(/^==/, ""),
      resolved: (text(each["git"]) || text(each["file"])) + commitIn(each),
      integrity: textsIn(each["hashes"]).toSorted().join(" "),
      from,
    })),
  );

const composerLock: Read = (content, from) =>
  ["packages", "packages-dev"].flatMap((group) =>
    objectsIn(fieldsOf(content, MAX_LOCK)?.[group]).map((each) => ({
      ecosystem: "composer" as const,
      ...(each["type"] === "composer-plugin" ? RUNS : {}),
      name: text(each["name"]),
      version: text(each["version"]),
      resolved: text(fieldAt(each, "dist", "url")) || text(fieldAt(each, "source", "url")),
      integrity:
        text(fieldAt(each, "dist", "shasum")) ||
        text(fieldAt(each, "dist", "reference")) ||
        text(fieldAt(each, "source", "reference")),
      from,
    })),
  );

const gemLock: Read = (content, from) => {
  const checksums = new Map(
    Array.from(
      content.matchAll(/^ {2}(\S+) \(([^)\s]+)\) (sha256=\S+)$/gm),
      ([, name = "", version = "", sum = ""]) => [`${name} ${version}`, sum],
    ),
  );
  const entries: LockEntry[] = [];
  let remote = "";
  let section = "";
  for (const line of content.split("\n")) {
    if (/^[A-Z]/.test(line)) section = line.trim();
    remote = /^ {2}remote: (\S+)/.exec(line)?.[1] ?? remote;
    const revision = /^ {2}revision: (\S+)/.exec(line)?.[1];
    if (revision !== undefined) remote = `${remote}#${revision}`;
    const spec = /^ {4}([\w.-]+) \(([^)]+)\)$/.exec(line);
    if (spec === null || section === "PATH") continue;
    const [, name = "", version = ""] = spec;
    const resolved = isKnownAddress(remote, "gem") ? "" : remote;
    entries.push({
      ecosystem: "gem",
      name,
      version,
      resolved,
      integrity: checksums.get(`${name} ${version}`) ?? "",
      from,
    });
  }
  return entries;
};

const READERS: Readonly<Record<LockForm, Read>> = {
  npm: npmLock,
  yarn: yarnLock,
  pnpm: pnpmLock,
  bun: bunLock,
  cargo: tomlLock("cargo"),
  poetry: tomlLock("pip"),
  uv: tomlLock("pip"),
  pdm: tomlLock("pip"),
  go: goSum,
  requirements,
  pipenv: pipfileLock,
  composer: composerLock,
  bundler: gemLock,
  gradle: gradleLock,
};

/** Undefined for a file that is no lock. */
export function readLock({ lower, path, text: content }: LookedAtFile): readonly LockEntry[] | undefined {
  const form = lockFormNamed(lower);
  if (form === undefined || content === undefined) return undefined;
  return READERS[form](content, path)
    .filter(({ name }) => name !== "")
    .slice(0, MAX_ENTRIES);
}
