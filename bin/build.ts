/**
 * Bundles src/cli into dist/ (one entry per command, shared chunks), packs npm for the image, and writes oclif's
 * manifest and the manual page.
 */
import { createHash } from "node:crypto";
import { createWriteStream, globSync } from "node:fs";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { Plugin } from "@oclif/core";
import { build } from "rolldown";
import { pack } from "tar-fs";
import type { CommandCatalogue } from "../src/cli/completion-answer.ts";
import "./programs.ts";
import { builtInModules } from "./built-in-modules.ts";
import { CHUNKS } from "./chunks.ts";
import { lazyRequires } from "./lazy-requires.ts";
import { manPage } from "./man-page.ts";

const root = path.join(import.meta.dirname, "..");
const commandRoot = path.join(root, "src/cli");

/** One letter beyond ASCII makes a file twice as large in memory, and slower to read. */
const asciiOnly = {
  name: "ascii-only",
  generateBundle(_: unknown, files: Readonly<Record<string, { code?: string }>>) {
    for (const file of Object.values(files))
      if (file.code !== undefined)
        file.code = file.code.replaceAll(
          /[\u0080-\uFFFF]/g,
          (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`,
        );
  },
};

interface Package {
  readonly version: string;
  readonly description: string;
  readonly oclif: { readonly topics: Readonly<Record<string, { readonly description: string }>> };
}

/** Native add-ons that dockerode's ssh transport tries to load and can do without. */
const OPTIONAL_NATIVE = ["cpu-features", /\.node$/];

function entries(): Record<string, string> {
  const commands = globSync("commands/**/*.ts", { cwd: commandRoot }).toSorted();
  const named = commands.map((file) => [file.replace(/\.ts$/, ""), path.join(commandRoot, file)] as const);
  const threads = [
    ["cut-worker", path.join(root, "src/search/files/cut-worker.ts")],
    ["page-worker", path.join(root, "src/extensions/web/page-worker.ts")],
  ] as const;
  return Object.fromEntries([["program", path.join(commandRoot, "program.ts")], ...threads, ...named]);
}

/**
 * Finds a cycle among the files of the bundle. Files in a cycle load in an order in which something is used before it
 * exists: for some commands, not for all.
 */
function firstCircle(needs: ReadonlyMap<string, readonly string[]>): readonly string[] | undefined {
  const done = new Set<string>();
  const from = (file: string, way: readonly string[]): readonly string[] | undefined => {
    if (way.includes(file)) return [...way.slice(way.indexOf(file)), file];
    if (done.has(file)) return undefined;
    for (const next of needs.get(file) ?? []) {
      const found = from(next, [...way, file]);
      if (found !== undefined) return found;
    }
    done.add(file);
    return undefined;
  };
  for (const file of needs.keys()) {
    const found = from(file, []);
    if (found !== undefined) return found;
  }
  return undefined;
}

// The manifest is written last and atomically: if it exists, the bundle is complete.
const manifest = path.join(root, "oclif.manifest.json");
await rm(manifest, { force: true });
await rm(path.join(root, "dist"), { recursive: true, force: true });
const { output: bundle } = await build({
  preserveEntrySignatures: "allow-extension",
  input: entries(),
  platform: "node",
  external: OPTIONAL_NATIVE,
  // React contains a development and a production build; only the latter is needed.
  transform: { define: { "process.env.NODE_ENV": '"production"' } },
  plugins: [lazyRequires, builtInModules, asciiOnly],
  resolve: { mainFields: ["module", "main"] },
  logLevel: "warn",
  output: {
    dir: path.join(root, "dist"),
    format: "cjs",
    entryFileNames: "[name].cjs",
    chunkFileNames: "chunks/[name]-[hash].cjs",
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: CHUNKS.map(({ name, of }) => ({
        name,
        test: new RegExp(of.map(({ source }) => source).join("|")),
      })),
    },
    minify: true,
  },
});

const circle = firstCircle(
  new Map(bundle.map((file) => [file.fileName, "imports" in file ? file.imports : []])),
);
if (circle !== undefined)
  throw new Error(`files of the bundle need each other: ${circle.join(" -> ")}; mend bin/chunks.ts`);

// The entry that loads all the others shares no chunk with them.
const hash = createHash("sha256");
for (const file of bundle.toSorted((a, b) => (a.fileName < b.fileName ? -1 : 1)))
  if ("code" in file) hash.update(`${file.fileName}\n${file.code}\n`);
await build({
  input: path.join(commandRoot, "main.ts"),
  platform: "node",
  transform: { define: { BUNDLE: JSON.stringify(hash.digest("hex").slice(0, 16)) } },
  plugins: [builtInModules],
  logLevel: "warn",
  output: { file: path.join(root, "dist/main.cjs"), format: "cjs", minify: true },
});

// Running harness does not need npm: it is shipped packed, only for building the image.
const npm = path.join(root, "node_modules/npm");
const unneeded = new Set(["docs", "man"].map((name) => path.join(npm, name)));
await pipeline(
  pack(npm, {
    ignore: (name) => unneeded.has(name),
    map: (header) => ({
      ...header,
      name: path.posix.join("package", header.name),
      mtime: new Date(0),
      uid: 0,
      gid: 0,
    }),
  }),
  createGzip(),
  createWriteStream(path.join(root, "dist/npm.tgz")),
);

const plugin = new Plugin({
  root,
  type: "core",
  ignoreManifest: true,
  errorOnManifestCreate: true,
  respectNoCacheDefault: true,
});
await plugin.load();
const count = Object.keys(plugin.manifest.commands).length;
if (count === 0) throw new Error("no command was found in dist/commands");
const whole = path.join(root, "dist/manifest.json");
const about = JSON.parse(await readFile(path.join(root, "package.json"), "utf8")) as Package;
const text = JSON.stringify(plugin.manifest);
const { commands } = JSON.parse(text) as Pick<CommandCatalogue, "commands">;
await writeFile(path.join(root, "dist/harness.1"), manPage(about, { commands, topics: about.oclif.topics }));
await writeFile(whole, text);
await rename(whole, manifest);
process.stderr.write(`built ${count} commands\n`);
process.exit(0);
