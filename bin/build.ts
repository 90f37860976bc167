/** Bundles src/cli into dist/ (one entry per command, shared chunks) and writes oclif's manifest. */
import { globSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { Plugin } from "@oclif/core";
import { build } from "rolldown";
import "./programs.ts";
import { CHUNKS } from "./chunks.ts";
import { lazyRequires } from "./lazy-requires.ts";

const root = path.join(import.meta.dirname, "..");
const commandRoot = path.join(root, "src/cli");

/** Compiled add-ons that dockerode's ssh transport tries and does without. */
const OPTIONAL_NATIVE = ["cpu-features", /\.node$/];

function entries(): Record<string, string> {
  const commands = globSync("commands/**/*.ts", { cwd: commandRoot }).toSorted();
  const named = commands.map((file) => [file.replace(/\.ts$/, ""), path.join(commandRoot, file)] as const);
  const thread = ["cut-worker", path.join(root, "src/search/index/cut-worker.ts")] as const;
  return Object.fromEntries([["main", path.join(commandRoot, "main.ts")], thread, ...named]);
}

// The manifest comes last, and at once: where it stands, the bundle is whole.
const manifest = path.join(root, "oclif.manifest.json");
await rm(manifest, { force: true });
await rm(path.join(root, "dist"), { recursive: true, force: true });
await build({
  preserveEntrySignatures: "allow-extension",
  input: entries(),
  platform: "node",
  external: OPTIONAL_NATIVE,
  plugins: [lazyRequires],
  resolve: { mainFields: ["module", "main"] },
  logLevel: "warn",
  output: {
    dir: path.join(root, "dist"),
    format: "esm",
    chunkFileNames: "chunks/[name]-[hash].js",
    codeSplitting: { includeDependenciesRecursively: false, groups: CHUNKS.map((group) => ({ ...group })) },
    minify: true,
  },
});

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
await writeFile(whole, JSON.stringify(plugin.manifest));
await rename(whole, manifest);
process.stderr.write(`built ${count} commands\n`);
process.exit(0);
